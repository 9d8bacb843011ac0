#!/bin/sh
# Builds a Debian package from a binary: `package-deb.sh BINARY [DIRECTORY]`. Prints its path. The package has
# the binary's name: vcc; vcc-lab, which needs the first of the same version; or vcc-guest, for guests.
#
#   VCC_HERE  for a binary of another architecture: a directory with one of the same name and sources that
#             runs here, which writes man pages and completions
#   DPKG_DEB_COMPRESSOR_TYPE, DPKG_DEB_COMPRESSOR_LEVEL  of dpkg-deb; default: xz, at its own level
#
# It does not use debhelper: scripts/install.sh provides the files, and little else is needed. The
# build is reproducible: the same sources and binary give the same bytes.
set -eu
cd "$(dirname "$0")/.."

. scripts/release/common.sh

begin_package "$@"
require_tools 'dpkg-dev binutils' dpkg-deb dpkg-shlibdeps "$gnu-strip" gzip
# Debian's version: upstream version and package revision.
revision=$version-1
maintainer="${DEBFULLNAME:-vcc maintainers} <${DEBEMAIL:-vcc@localhost}>"

root=$work/debian/$name
mkdir -p "$root/DEBIAN"
install_binary "$root" /usr ZSH_COMPLETIONS=/usr/share/zsh/vendor-completions

doc=$root/usr/share/doc/$name
own=packaging/debian
scripts='postinst prerm postrm'
if [ "$name" = vcc-guest ]; then
	own=packaging/debian/guest
fi
if [ "$name" != vcc-lab ]; then
	# Debian's own file names.
	mv "$doc/CHANGELOG.md" "$doc/changelog"
	cat >"$doc/changelog.Debian" <<-END
		$name ($revision) unstable; urgency=medium

		  * Version $version; see changelog.gz for the changes.

		 -- $maintainer  $(date --utc --rfc-email --date="@$SOURCE_DATE_EPOCH")
	END
	gzip -9n "$doc/changelog" "$doc/changelog.Debian"
	install -m 644 packaging/debian/copyright "$doc/copyright"
else
	# Of the same sources and version, so its changes and licenses are vcc's.
	mkdir -p "$(dirname "$doc")"
	ln -s vcc "$doc"
	own=packaging/debian/lab
	scripts=
fi
install -D -m 644 "$own/lintian-overrides" "$root/usr/share/lintian/overrides/$name"

# Depends: the packages of the libraries that the binary is linked with.
printf 'Source: vcc\n\nPackage: %s\nArchitecture: any\n' "$name" >"$work/debian/control"
libraries=$(cd "$work" && DEB_HOST_ARCH=$architecture dpkg-shlibdeps -O "debian/$name/usr/bin/$name" 2>/dev/null) ||
	fail "dpkg-shlibdeps found no package for a library of $1"
size=$(du -k -s --apparent-size --exclude=DEBIAN "$root" | cut -f 1)
sed -e "s|@VERSION@|$revision|" -e "s|@ARCHITECTURE@|$architecture|" \
	-e "s|@MAINTAINER@|$maintainer|" -e "s|@SIZE@|$size|" \
	-e "s|@LIBRARIES@|${libraries#shlibs:Depends=}|" "$own/control" >"$root/DEBIAN/control"
[ ! -e "$root/etc" ] || (cd "$root" && find etc -type f -printf '/%p\n' | LC_ALL=C sort) >"$root/DEBIAN/conffiles"
(cd "$root" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
for script in $scripts; do
	sed "s|@UPSTREAM@|$version|" "$own/$script" >"$root/DEBIAN/$script"
	chmod 755 "$root/DEBIAN/$script"
done

date_all "$root"
package=$output/${name}_${revision}_$architecture.deb
# dpkg-deb sorts the members and uses SOURCE_DATE_EPOCH for the archive. One thread, because the
# compressed blocks would depend on the number of CPUs.
dpkg-deb --root-owner-group --threads-max=1 "-Z${DPKG_DEB_COMPRESSOR_TYPE:-xz}" --build "$root" "$package" >/dev/null
echo "$package"
