#!/bin/sh
# Makes an archive of the operator's binary and all that belongs to it, for hosts of any distribution:
# `package-archive.sh BINARY [DIRECTORY]`. Prints its path. The script in it installs and removes the files.
#
#   VCC_HERE  for a binary of another architecture: a directory with one of the same name and sources that
#             runs here, which writes man pages and completions
#   GZIP_LEVEL  how well it is compressed; default: 9
#
# The build is reproducible: the same sources and binary give the same bytes.
set -eu
cd "$(dirname "$0")/.."

. scripts/release/common.sh

begin_package "$@"
require_tools binutils "$gnu-strip" gzip
[ "$name" = vcc ] || fail "$binary is not the operator's command, vcc"
top=vcc-$version
tree=$work/$top
install_binary "$tree/files" /usr/local
install -m 755 packaging/archive/install.sh "$tree/install.sh"
install -m 644 LICENSE README.md CHANGELOG.md "$tree/"
cp -r LICENSES "$tree/"
if ! readelf --program-headers "$binary" | grep -q INTERP; then
	cat >"$tree/NOTICE" <<-END
		The command vcc is linked statically with libraries under licences of their own: glibc (LGPL-2.1 or
		later), libelf of elfutils (LGPL-3 or later, or GPL-2 or later), libbpf (LGPL-2.1 or BSD-2-Clause), zlib
		(Zlib), and Rust crates, which vcc-$version.cdx.json lists. From the sources of vcc $version,
		scripts/release/static.sh links it anew, also with other versions of them.
	END
fi
chmod -R u=rwX,go=rX "$tree"
archive=$output/$top-$architecture.tar.gz
tar --create --directory "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
	--format=gnu "$top" | gzip "-${GZIP_LEVEL:-9}n" >"$archive"
echo "$archive"
