#!/bin/sh
# Compiles, in Debian's source and configuration, what the patches of PVTCP touch, and the module tcp_flood as
# DKMS does: both are for any guest, not only for the lab's.
#
#   check-pvtcp.sh [--quick]
#
# With --quick, only PVTCP for Linux 7.3: the lab's own kernel is 6.12 with the same patches.
set -eu
cd "$(dirname "$0")/.."

[ "${1-}" != --quick ] || exec guest/pvtcp/build.sh --release 7.3 --check

work=$(mktemp -d "${TMPDIR:-/tmp}/check-pvtcp.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
for release in 6.12 7.3; do
	mkdir "$work/$release"
	cp guest/kernel/tcp_flood.c guest/flood_tcp.h guest/flood.h packaging/dkms/Makefile "$work/$release/"
	guest/pvtcp/build.sh --release "$release" --check --module "$work/$release"
	if [ ! -s "$work/$release/tcp_flood.o" ]; then
		echo 'check-pvtcp: there is no tcp_flood.o' >&2
		exit 1
	fi
done
echo 'compiled in the configurations of Linux 6.12 and 7.3: PVTCP and the module tcp_flood'
