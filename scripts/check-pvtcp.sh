#!/bin/sh
# Builds the packages of a kernel with PVTCP, in Debian's configuration, and the module tcp_flood as DKMS does,
# against the headers of that kernel: both are for any guest, not only for the lab's. Linux 6.12 takes 45 minutes
# on 2 CPUs; of 7.3, the files that the patches touch are compiled.
#
#   check-pvtcp.sh [--quick]
#
# With --quick, only the latter: the lab's own kernel is 6.12 with the same patches.
set -eu
cd "$(dirname "$0")/.."

fail() {
	echo "check-pvtcp: $*" >&2
	exit 1
}

guest/pvtcp/build.sh --release 7.3 --check
[ "${1-}" != --quick ] || exit 0

work=$(mktemp -d "${TMPDIR:-/tmp}/check-pvtcp.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
guest/pvtcp/build.sh "$work"
for package in "$work"/*.deb; do
	dpkg-deb -x "$package" "$work/root" || fail "cannot unpack $package"
done
headers=$(echo "$work"/root/usr/src/linux-headers-*)
mkdir "$work/module"
cp guest/kernel/tcp_flood.c guest/flood_tcp.h guest/flood.h packaging/dkms/Makefile "$work/module/"
make -C "$headers" M="$work/module" modules >"$work/log" 2>&1 || fail "the module: $(tail -n 9 "$work/log")"
[ -s "$work/module/tcp_flood.ko" ] || fail 'there is no tcp_flood.ko'
echo "built: $(basename -a "$work"/*.deb | paste -sd ' ') and the module tcp_flood"
