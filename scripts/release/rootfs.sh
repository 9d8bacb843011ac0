#!/bin/sh
# What a container image has in it: `rootfs.sh ARCHITECTURE BINARY DIRECTORY`. The command, the libraries
# that it needs with their copyrights, and the policy; no shell and no package manager, for vcc runs no
# other program.
#
# The libraries are those of this machine's Debian packages of the architecture.
set -eu
cd "$(dirname "$0")/../.."

. scripts/release/common.sh

architecture=$1
binary=$2
root=$3
gnu=$(gnu_of "$architecture")
libraries="/lib/$gnu /usr/lib/$gnu"

# put MODE FILE TARGET
put() {
	install -D -m "$1" "$2" "$root$3"
}

needed() {
	readelf --dynamic --wide "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p'
}

find_library() {
	for directory in $libraries; do
		[ ! -e "$directory/$1" ] || { echo "$directory/$1" && return; }
	done
	fail "$1 of $architecture is in neither of $libraries: scripts/install-deps.sh release"
}

# Debian's package of a library. It may be registered with the directory before /usr was merged.
package_of() {
	real=$(realpath "$1")
	dpkg-query --search "$real" "${real#/usr}" 2>/dev/null | head -n 1 | cut -d : -f 1
}

put 755 "$binary" /usr/bin/vcc

# The loader has a name of its own in each program; libraries name those that they need.
loader=$(readelf --program-headers --wide "$binary" | sed -n 's/.*program interpreter: \(.*\)\]$/\1/p')
found=$(find_library "$(basename "$loader")" 2>/dev/null || realpath "$loader")
put 755 "$found" "$loader"
packages=$(package_of "$found")
wanted=$(needed "$binary")
while [ -n "$wanted" ]; do
	next=
	for library in $wanted; do
		if [ "$library" = "$(basename "$loader")" ] || [ -e "$root/lib/$gnu/$library" ]; then
			continue
		fi
		found=$(find_library "$library")
		put 644 "$found" "/lib/$gnu/$library"
		packages="$packages $(package_of "$found")"
		next="$next $(needed "$found")"
	done
	wanted=$next
done
# Also what the bill of materials names them by (sbom.sh).
for package in $packages; do
	put 644 "$(realpath "/usr/share/doc/$package/copyright")" "/usr/share/doc/$package/copyright"
done

put 644 packaging/policy.toml /etc/vcc/policy.toml
for license in LICENSE LICENSES/*; do
	put 644 "$license" "/usr/share/doc/vcc/$(basename "$license")"
done
mkdir -p "$root/run/vcc" "$root/sys/fs/bpf" "$root/proc" "$root/dev"
