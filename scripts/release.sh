#!/bin/sh
# Makes a release: `release.sh [DIRECTORY]`, by default dist/. What is in it:
#
#   vcc_VERSION-1_ARCHITECTURE.deb  Debian packages for amd64 and arm64
#   vcc-lab_VERSION-1_ARCHITECTURE.deb  likewise, of the lab
#   vcc-guest_VERSION-1_ARCHITECTURE.deb  likewise, for guests
#   vcc-VERSION-ARCHITECTURE.tar.gz  the operator's for hosts of other distributions, linked statically
#   vcc-VERSION-1.ARCHITECTURE.rpm  the same as a package
#   vcc-guest-VERSION-ARCHITECTURE.tar.gz  the same for guests of other distributions, linked statically
#   vcc-VERSION.oci.tar             a container image for both, as an OCI archive
#   vcc-VERSION.cdx.json            what is in them, as CycloneDX
#   vcc-VERSION.md                  what is new, of CHANGELOG.md
#   SHA256SUMS                      of all these
#
# Equal sources, compilers and Debian packages give equal bytes, in any directory
# (scripts/check-reproducible.sh).
set -eu
cd "$(dirname "$0")/.."

. scripts/release/common.sh

dist=${1:-dist}
version=$(version_of_sources)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Nothing of an earlier release is taken for this one's.
rm -rf "$dist"
mkdir -p "$dist"
here=$(dpkg --print-architecture)
# Binaries that run here come first: they write the man pages of all.
images=
for architecture in "$here" $(echo "$architectures" | tr ' ' '\n' | grep -vx "$here"); do
	echo "release: building for $architecture" >&2
	binaries=$(scripts/release/build.sh "$architecture")
	[ "$architecture" != "$here" ] || VCC_HERE=$binaries
	export VCC_HERE
	package=$(scripts/package-deb.sh "$binaries/vcc" "$dist")
	scripts/package-deb.sh "$binaries/vcc-lab" "$dist" >/dev/null
	scripts/package-deb.sh "$binaries/vcc-guest" "$dist" >/dev/null
	scripts/release/guest.sh "$architecture" "$dist" >/dev/null
	scripts/release/static.sh "$architecture" "$dist" >/dev/null
	# What the package installs is what the image runs.
	dpkg-deb --fsys-tarfile "$package" | tar --extract --to-stdout ./usr/bin/vcc >"$work/vcc"
	scripts/release/rootfs.sh "$architecture" "$work/vcc" "$work/$architecture"
	images="$images $architecture=$work/$architecture"
done
# shellcheck disable=SC2086 # a list of words without spaces
{
	scripts/release/oci.sh "$dist/vcc-$version.oci.tar" $images
	scripts/release/sbom.sh $images >"$dist/vcc-$version.cdx.json"
}
scripts/release/notes.sh "$version" >"$dist/vcc-$version.md"
(cd "$dist" && sha256sum -- * >"$work/SHA256SUMS")
install -m 644 "$work/SHA256SUMS" "$dist/SHA256SUMS"
cat "$dist/SHA256SUMS"
