#!/bin/sh
# Builds the Debian package from a binary: `package-deb.sh BINARY [DIRECTORY]`. Prints its path.
#
#   VCC_HERE  for a binary of another architecture: one of the same sources that runs here, which
#             writes man pages and completions
#
# It does not use debhelper: scripts/install.sh provides the files, and little else is needed. The
# build is reproducible: the same sources and binary give the same bytes.
set -eu
cd "$(dirname "$0")/.."

. scripts/release/common.sh

[ -x "${1:-}" ] || fail "'${1:-}' is no binary: make build first"
architecture=$(architecture_of "$1")
gnu=$(gnu_of "$architecture")
for tool in dpkg-deb dpkg-shlibdeps "$gnu-strip" gzip; do
	command -v "$tool" >/dev/null || fail "$tool is missing: apt-get install dpkg-dev binutils"
done
binary=$(realpath "$1")
here=$(realpath "${VCC_HERE:-$binary}")
output=${2:-.}
mkdir -p "$output"

version=$(version_of_sources)
[ "$("$here" --version)" = "vcc $version" ] ||
	fail "$here is $("$here" --version), Cargo.toml says $version: make build"
# Debian's version: upstream version and package revision.
revision=$version-1
maintainer="${DEBFULLNAME:-vcc maintainers} <${DEBEMAIL:-vcc@localhost}>"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/debian/vcc
mkdir -p "$root/DEBIAN"

DESTDIR=$root PREFIX=/usr ZSH_COMPLETIONS=/usr/share/zsh/vendor-completions VCC=$binary \
	VCC_HERE=$here scripts/install.sh install
"$gnu-strip" --strip-unneeded --remove-section=.comment --remove-section=.note "$root/usr/bin/vcc"

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
libraries=$(cd "$work" && DEB_HOST_ARCH=$architecture dpkg-shlibdeps -O debian/vcc/usr/bin/vcc 2>/dev/null) ||
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
