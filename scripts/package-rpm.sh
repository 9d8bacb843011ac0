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

[ -x "${1:-}" ] || fail "'${1:-}' is no binary: make build first"
architecture=$(architecture_of "$1")
gnu=$(gnu_of "$architecture")
for tool in rpmbuild "$gnu-strip" gzip; do
	command -v "$tool" >/dev/null || fail "$tool is missing: apt-get install rpm binutils"
done
binary=$(realpath "$1")
output=${2:-.}
mkdir -p "$output"
output=$(realpath "$output")
version=$(version_of_sources)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root

env -u VCC_LAB -u VCC_GUEST DESTDIR="$root" PREFIX=/usr VCC="$binary" VCC_HERE="${VCC_HERE:+$(realpath "$VCC_HERE")}" \
	scripts/install.sh install >&2
"$gnu-strip" --strip-unneeded --remove-section=.comment --remove-section=.note "$root/usr/bin/vcc"
for license in LICENSE LICENSES/*; do
	install -D -m 644 "$license" "$root/usr/share/licenses/vcc/$license"
done
find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +

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
