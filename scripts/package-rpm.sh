#!/bin/sh
# Builds an RPM package from the operator's binary: `package-rpm.sh BINARY [DIRECTORY]`. Prints its path. It has
# the files of the Debian package. A binary that is linked statically suits all distributions.
#
#   VCC_HERE     for a binary of another architecture: a directory with one of the same name and sources that
#                runs here, which writes man pages and completions
#   RPM_PAYLOAD  how it is compressed, as rpmbuild names it; default: w6.xzdio
#
# The build is reproducible: the same sources and binary give the same bytes.
set -eu
cd "$(dirname "$0")/.."

. scripts/release/common.sh

begin_package "$@"
require_tools 'rpm binutils' rpmbuild "$gnu-strip" gzip
[ "$name" = vcc ] || fail "$binary is not the operator's command, vcc"
root=$work/root
install_binary "$root" /usr
for license in LICENSE LICENSES/*; do
	install -D -m 644 "$license" "$root/usr/share/licenses/vcc/$license"
done
date_all "$root"

# The directories that no other package has are the package's own, and go with it.
(
	cd "$root"
	echo '%defattr(-,root,root)'
	find etc/vcc usr/share/vcc usr/share/doc/vcc usr/share/licenses/vcc -type d -printf '%%dir "/%p"\n'
	find usr -type f -printf '"/%p"\n'
	find etc -type f -printf '%%config(noreplace) "/%p"\n'
) | LC_ALL=C sort >"$work/files"
license=$(sed -n 's/^license = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
sed -e "s|@VERSION@|$version|" -e "s|@LICENSE@|$license|" -e "s|@ROOT@|$root|" -e "s|@FILES@|$work/files|" \
	packaging/rpm/vcc.spec >"$work/vcc.spec"
target=$(triple_of "$architecture")
rpmbuild -bb --quiet --target "${target%%-*}-linux" --define "_topdir $work/rpmbuild" --define "_rpmdir $work" \
	--define "_binary_payload ${RPM_PAYLOAD:-w6.xzdio}" --define "_rpmfilename vcc-$version-1.${target%%-*}.rpm" \
	"$work/vcc.spec" >"$work/log" 2>&1 || fail "rpmbuild: $(tail -n 5 "$work/log")"
mv "$work/vcc-$version-1.${target%%-*}.rpm" "$output/"
echo "$output/vcc-$version-1.${target%%-*}.rpm"
