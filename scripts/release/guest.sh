#!/bin/sh
# Makes the archive for guests of any distribution: `guest.sh ARCHITECTURE DIRECTORY`, as Debian names it (amd64,
# arm64). Prints its path. The command in it is linked statically. Equal sources give equal bytes, as in build.sh.
# shellcheck disable=SC2086 # CARGO may be several words
set -eu
cd "$(dirname "$0")/../.."

. scripts/release/common.sh

[ $# -eq 2 ] || fail 'usage: guest.sh ARCHITECTURE DIRECTORY'
architecture=$1 output=$2
gnu=$(gnu_of "$architecture")
version=$(version_of_sources)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

binary=$(scripts/release/build.sh "$architecture" static vcc-guest)/vcc-guest
! readelf --program-headers "$binary" | grep -q INTERP || fail "$binary is not linked statically"
# A message of libbpf 1.4 and newer.
grep -q 'not found in kernel, skipping it' "$binary" || fail "$binary is not linked with the libbpf of libbpf-sys"
top=vcc-guest-$version
tree=$work/$top
mkdir -p "$tree/module"
"$gnu-strip" --strip-unneeded --remove-section=.comment --remove-section=.note -o "$tree/vcc-guest" "$binary"
install -m 644 packaging/guest/*.service docs/vcc-guest.md LICENSE "$tree/"
cp -r LICENSES "$tree/"
cat >"$tree/NOTICE" <<-END
	The command vcc-guest is linked statically with libraries under licences of their own: glibc (LGPL-2.1 or
	later), libelf of elfutils (LGPL-3 or later, or GPL-2 or later), libbpf (LGPL-2.1 or BSD-2-Clause), zlib
	(Zlib), and Rust crates, which vcc-$version.cdx.json lists. From the sources of vcc $version,
	scripts/release/guest.sh links it anew, also with other versions of them.
END
sed "s|@VERSION@|$version|" packaging/dkms/dkms.conf >"$tree/module/dkms.conf"
install -m 644 packaging/dkms/Makefile guest/kernel/tcp_flood.c guest/flood_tcp.h guest/flood.h "$tree/module/"
chmod -R u=rwX,go=rX "$tree"

mkdir -p "$output"
archive=$output/$top-$architecture.tar.gz
tar --create --directory "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
	--format=gnu "$top" | gzip -9n >"$archive"
echo "$archive"
