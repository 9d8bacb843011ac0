#!/bin/sh
# Builds the Debian package from a binary: `package-deb.sh BINARY [DIRECTORY]`. Prints its path.
#
# It does not use debhelper: scripts/install.sh provides the files, and little else is needed. The
# build is reproducible: the same sources and binary give the same bytes.
set -eu
cd "$(dirname "$0")/.."

fail() {
	echo "package-deb: $*" >&2
	exit 1
}

[ -x "${1:-}" ] || fail "'${1:-}' is no binary: make build first"
for tool in dpkg-deb dpkg-shlibdeps strip gzip; do
	command -v "$tool" >/dev/null || fail "$tool is missing: apt-get install dpkg-dev binutils"
done
binary=$(realpath "$1")
output=${2:-.}
mkdir -p "$output"

# All timestamps are those of the sources' last change.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}
export SOURCE_DATE_EPOCH
umask 022

version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
[ "$("$binary" --version)" = "vcc $version" ] ||
	fail "$1 is $("$binary" --version), Cargo.toml says $version: make build"
# Debian's version: upstream version and package revision.
revision=$version-1
architecture=$(dpkg --print-architecture)
maintainer="${DEBFULLNAME:-vcc maintainers} <${DEBEMAIL:-vcc@localhost}>"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/debian/vcc
mkdir -p "$root/DEBIAN"

DESTDIR=$root PREFIX=/usr ZSH_COMPLETIONS=/usr/share/zsh/vendor-completions VCC=$binary \
	scripts/install.sh install
strip --strip-unneeded --remove-section=.comment --remove-section=.note "$root/usr/bin/vcc"

# Debian's own file names.
doc=$root/usr/share/doc/vcc
mv "$doc/CHANGELOG.md" "$doc/changelog"
cat >"$doc/changelog.Debian" <<END
vcc ($revision) unstable; urgency=medium

  * Version $version; see changelog.gz for the changes.

 -- $maintainer  $(date --utc --rfc-email --date="@$SOURCE_DATE_EPOCH")
END
gzip -9n "$doc/changelog" "$doc/changelog.Debian"
install -m 644 packaging/debian/copyright "$doc/copyright"
install -D -m 644 packaging/debian/lintian-overrides "$root/usr/share/lintian/overrides/vcc"

# Depends: the packages of the libraries that the binary is linked with.
printf 'Source: vcc\n\nPackage: vcc\nArchitecture: any\n' >"$work/debian/control"
libraries=$(cd "$work" && dpkg-shlibdeps -O debian/vcc/usr/bin/vcc 2>/dev/null) ||
	fail "dpkg-shlibdeps found no package for a library of $1"
size=$(du -k -s --apparent-size --exclude=DEBIAN "$root" | cut -f 1)
sed -e "s|@VERSION@|$revision|" -e "s|@ARCHITECTURE@|$architecture|" \
	-e "s|@MAINTAINER@|$maintainer|" -e "s|@SIZE@|$size|" \
	-e "s|@LIBRARIES@|${libraries#shlibs:Depends=}|" packaging/debian/control >"$root/DEBIAN/control"
(cd "$root" && find etc -type f -printf '/%p\n' | LC_ALL=C sort) >"$root/DEBIAN/conffiles"
(cd "$root" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
for script in postinst prerm postrm; do
	install -m 755 "packaging/debian/$script" "$root/DEBIAN/$script"
done

find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
package=$output/vcc_${revision}_$architecture.deb
# dpkg-deb sorts the members and uses SOURCE_DATE_EPOCH for the archive. One thread, because the
# compressed blocks would depend on the number of CPUs.
dpkg-deb --root-owner-group --threads-max=1 -Zxz --build "$root" "$package" >/dev/null
echo "$package"
