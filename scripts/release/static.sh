#!/bin/sh
# Makes what suits hosts of any distribution: `static.sh ARCHITECTURE DIRECTORY`, with the architecture as Debian
# names it (amd64, arm64): an archive and an RPM package of the operator's command, linked statically. Prints
# their paths. Equal sources give equal bytes, as in build.sh.
set -eu
cd "$(dirname "$0")/../.."

. scripts/release/common.sh

[ $# -eq 2 ] || fail 'usage: static.sh ARCHITECTURE DIRECTORY'
binary=$(scripts/release/build.sh "$1" static vcc)/vcc
! readelf --program-headers "$binary" | grep -q INTERP || fail "$binary is not linked statically"
scripts/package-archive.sh "$binary" "$2"
scripts/package-rpm.sh "$binary" "$2"
