#!/bin/sh
# Compiles what 07-pvtcp.patch touches in Debian's x86 kernel, and the module tcp_flood as DKMS does: both are for
# any guest, not only for the lab's. Takes a few minutes; build.sh has installed the source and the tools.
set -eu
here=$(cd "$(dirname "$0")/../guest/kernel" && pwd)

source=linux-source-6.12
config=linux-config-6.12
patch=$here/07-pvtcp.patch
archive=/usr/src/$source.tar.xz

fail() {
	echo "check-x86: $*" >&2
	exit 1
}

[ -r "$archive" ] || fail "$archive is missing: install the package $source"
work=$(mktemp -d "${TMPDIR:-/tmp}/check-x86.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
log=$work/log

# The package would also install what builds modules.
(cd "$work" && apt-get -qq download "$config" && dpkg-deb -x "$config"_*.deb .) >"$log" 2>&1 ||
	fail "cannot download $config: $(tail -n 1 "$log")"
tar -xJf "$archive" -C "$work" --exclude='*/Documentation/*/*' \
	--exclude='*/drivers/gpu/*.[ch]' --exclude='*/drivers/net/*/*.[ch]' --exclude='*/sound/*.[ch]' \
	--exclude='*/arch/*.dts*' || fail "cannot unpack $archive"
cd "$work/$source"
patch -p1 --fuzz=0 <"$patch" >"$log" 2>&1 || fail "the patch does not apply: $(tail -n 3 "$log")"
xz -dc "$work/usr/src/$config/config.amd64_none_amd64.xz" >.config
make ARCH=x86 olddefconfig >"$log" 2>&1 || fail "make olddefconfig failed: $(tail -n 5 "$log")"
objects=$(sed -n 's|^+++ b/\(.*\)\.c$|\1.o|p' "$patch")
# shellcheck disable=SC2086 # a list of words
make ARCH=x86 -j "$(nproc)" $objects >"$log" 2>&1 || fail "make failed: $(tail -n 9 "$log")"
for object in $objects; do
	[ -s "$object" ] || fail "there is no $object"
done
mkdir "$work/module"
cp "$here/tcp_flood.c" "$here/../flood_tcp.h" "$here/../flood.h" "$here/../../packaging/dkms/Makefile" "$work/module/"
make ARCH=x86 M="$work/module" tcp_flood.o >"$log" 2>&1 || fail "the module: $(tail -n 9 "$log")"
[ -s "$work/module/tcp_flood.o" ] || fail 'there is no tcp_flood.o'
echo "compiled for x86: $(echo "$objects" | paste -sd ' ') and the module tcp_flood"
