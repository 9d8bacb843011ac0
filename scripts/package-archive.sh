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

[ -x "${1:-}" ] || fail "'${1:-}' is no binary: make build first"
architecture=$(architecture_of "$1")
gnu=$(gnu_of "$architecture")
binary=$(realpath "$1")
output=${2:-.}
mkdir -p "$output"
version=$(version_of_sources)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
top=vcc-$version
tree=$work/$top
env -u VCC_LAB -u VCC_GUEST DESTDIR="$tree/files" PREFIX=/usr/local VCC="$binary" \
	VCC_HERE="${VCC_HERE:+$(realpath "$VCC_HERE")}" scripts/install.sh install >&2
"$gnu-strip" --strip-unneeded --remove-section=.comment --remove-section=.note "$tree/files/usr/local/bin/vcc"
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
