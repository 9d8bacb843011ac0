#!/bin/sh
# Builds the lab's guest kernel unless it is cached, and prints its path.
#
#   build.sh [CACHE]    cache directory; default: $XDG_CACHE_HOME/vcc or ~/.cache/vcc
#
# The kernel is Debian's source, built as User-Mode Linux with the `defconfig`, the patches and the
# congestion control beside this script. A change of any of these builds another kernel. A build takes
# 4 minutes on 2 CPUs and 2 GB of disk; the result takes 10 MB.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cache=${1:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/vcc}

source=linux-source-6.12
archive=/usr/src/$source.tar.xz
# For net/ipv4.
set -- "$here/tcp_flood.c" "$here/../flood_tcp.h" "$here/../flood.h"

fail() {
	echo "guest kernel: $*" >&2
	exit 1
}

recipe=$(cat "$here/build.sh" "$here/defconfig" "$here"/*.patch "$@" | sha256sum | cut -c 1-12)
kernel=$cache/guest-kernel-$recipe/linux
if [ -x "$kernel" ]; then
	echo "$kernel"
	exit 0
fi

mkdir -p "$cache" || fail "cannot create $cache"
# A concurrent build waits here and then finds the first one's kernel.
exec 9>"$cache/guest-kernel.lock"
flock 9 || fail "cannot lock $cache/guest-kernel.lock"
rm -rf "$cache"/guest-kernel-build.*
if [ -x "$kernel" ]; then
	echo "$kernel"
	exit 0
fi

missing=
for package in bc bison flex gcc libc6-dev make patch xz-utils $source; do
	dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null |
		grep -qx installed || missing="$missing $package"
done
if [ -n "$missing" ]; then
	command -v apt-get >/dev/null || fail "these packages are missing:$missing"
	[ "$(id -u)" -eq 0 ] || fail "these packages are missing, install them as root:$missing"
	echo "guest kernel: installing$missing" >&2
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq >&2 || fail 'apt-get update failed: check the network'
	# shellcheck disable=SC2086 # a list of words
	apt-get install -y -qq --no-install-recommends $missing >/dev/null ||
		fail "apt-get could not install$missing"
fi
[ -r "$archive" ] || fail "the package $source is installed, but $archive is missing"

work=$(mktemp -d "$cache/guest-kernel-build.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
log=$work/log
echo "guest kernel: building $source, about 4 minutes" >&2

# Most of the archive is not needed for User-Mode Linux.
tar -xJf "$archive" -C "$work" --exclude='*/Documentation/*/*' \
	--exclude='*/drivers/gpu/*.[ch]' --exclude='*/drivers/net/*/*.[ch]' --exclude='*/sound/*.[ch]' \
	--exclude='*/tools/testing/*' --exclude='*/arch/*.dts*' || fail "cannot unpack $archive"
cd "$work/$source"
for change in "$here"/*.patch; do
	patch -p1 --fuzz=0 <"$change" >>"$log" 2>&1 ||
		fail "$(basename "$change") does not apply to $source: $(tail -n 3 "$log")"
done
cp "$@" net/ipv4/
mkdir "$work/out"
cp "$here/defconfig" "$work/out/.config"
# Reproducible: no user, host or time in the binary.
build() {
	make ARCH=um O="$work/out" KBUILD_BUILD_TIMESTAMP='2000-01-01 00:00:00' KBUILD_BUILD_USER=vcc \
		KBUILD_BUILD_HOST=lab KBUILD_BUILD_VERSION=1 "$@" >>"$log" 2>&1 ||
		fail "make $* failed: $(tail -n 5 "$log")"
}
build olddefconfig
build -j "$(nproc)" linux
strip "$work/out/linux" -o "$work/linux"
mkdir -p "$(dirname "$kernel")"
mv "$work/linux" "$kernel"
echo "$kernel"
