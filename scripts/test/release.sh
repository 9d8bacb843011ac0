#!/bin/bash
# Tests what a release has besides packages, for this machine's architecture, of one binary: the container
# image, the bill of materials, the notes: `release.sh BINARY`. Exit code 77 means skipped, for the reason in
# the last line. scripts/check-reproducible.sh makes and compares whole releases.
set -eu
cd "$(dirname "$0")/../.."

fail() {
	echo "release: $*" >&2
	exit 1
}

skip() {
	echo "$*"
	exit 77
}

given=$(realpath "${1:?no binary given: usage: release.sh BINARY}")
for tool in dpkg-query readelf strip tar; do
	command -v "$tool" >/dev/null || skip "$tool is not installed"
done
architecture=$(dpkg --print-architecture)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# As that of a package, which is what an image has; its debug information would take a minute to pack.
binary=$work/vcc
strip -o "$binary" "$given"
version=$("$binary" --version | cut -d ' ' -f 2)

echo '-- image'
# Little compression: it would take most of the time.
export GZIP_LEVEL=1
archive=$work/vcc.oci.tar
scripts/release/rootfs.sh "$architecture" "$binary" "$work/root"
scripts/release/oci.sh "$archive" "$architecture=$work/root" "other=$work/root"
# Reproducible: files of another time and mode, another time zone, locale and umask give the same bytes.
(
	umask 077
	TZ=Asia/Tokyo LC_ALL=C.UTF-8 scripts/release/rootfs.sh "$architecture" "$binary" "$work/again"
	find "$work/again" -exec touch --no-dereference --date=2001-02-03 {} +
	TZ=Asia/Tokyo LC_ALL=C.UTF-8 scripts/release/oci.sh "$work/again.oci.tar" \
		"$architecture=$work/again" "other=$work/again"
)
cmp "$archive" "$work/again.oci.tar" || fail 'two runs give different images'
# Others read it, too.
if command -v skopeo >/dev/null; then
	for arch in "$architecture" other; do
		said=$(skopeo inspect --override-arch "$arch" "oci-archive:$archive:$version") ||
			fail 'skopeo cannot read the image'
		grep -q "\"Architecture\": \"$arch\"" <<<"$said" || fail "skopeo reads another than $arch: $said"
	done
else
	echo 'release: skopeo is not installed, continuing without'
fi
if command -v umoci >/dev/null && [ "$(id -u)" -eq 0 ]; then
	mkdir "$work/layout"
	skopeo copy --quiet --override-arch "$architecture" "oci-archive:$archive:$version" "oci:$work/layout:$version"
	umoci unpack --image "$work/layout:$version" "$work/bundle" 2>"$work/said" || fail "umoci: $(cat "$work/said")"
	root=$work/bundle/rootfs
	# What the container runs by default, and nothing else is needed for it.
	tr -d ' \n\t' <"$work/bundle/config.json" |
		grep -qF '"args":["/usr/bin/vcc","run","--config","/etc/vcc/policy.toml"]' ||
		fail 'the image runs something else'
	[ "$(chroot "$root" /usr/bin/vcc --version)" = "vcc $version" ] || fail 'the image lacks what its command needs'
	chroot "$root" /usr/bin/vcc policy check /etc/vcc/policy.toml
else
	echo 'release: umoci is not installed, or there is no root: nothing of the image is run'
fi

echo '-- bill of materials'
scripts/release/sbom.sh "$architecture=$work/root" >"$work/sbom.json"
for part in pkg:cargo/libbpf-rs@ pkg:github/libbpf/libbpf@ pkg:github/rust-lang/rust@ pkg:deb/debian/libelf1@ \
	pkg:deb/debian/libc6@; do
	grep -qF "\"$part" "$work/sbom.json" || fail "the bill of materials lacks $part"
done
! grep -q 'pkg:cargo/vcc' "$work/sbom.json" || fail 'the bill of materials has crates of vcc itself'
# The schema comes with the library; cached, because it is a download.
validator='cyclonedx-python-lib[json-validation]==11.12.0'
place=${XDG_CACHE_HOME:-$HOME/.cache}/vcc/$validator
if [ ! -e "$place/complete" ]; then
	rm -rf "$place"
	if python3 -m venv "$place" >/dev/null 2>&1 &&
		"$place/bin/pip" install --quiet --disable-pip-version-check "$validator" >/dev/null 2>&1; then
		touch "$place/complete"
	fi
fi
valid() {
	"$place/bin/python" - "$1" <<-'END'
		import sys
		from cyclonedx.schema import SchemaVersion
		from cyclonedx.validation.json import JsonStrictValidator
		with open(sys.argv[1]) as file:
		    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(file.read())
		sys.exit(f"{error}" if error else 0)
	END
}
if [ -e "$place/complete" ]; then
	valid "$work/sbom.json" || fail 'the bill of materials is no CycloneDX 1.6'
	# The validator does find errors.
	sed 's/"bom-ref"/"bomref"/' "$work/sbom.json" >"$work/wrong.json"
	! valid "$work/wrong.json" 2>/dev/null || fail 'the validator accepts an invalid bill of materials'
else
	echo "release: $validator cannot be installed, continuing without"
fi

echo '-- notes'
scripts/release/notes.sh "$version" >"$work/notes"
grep -q "^# vcc $version" "$work/notes" || fail 'the notes have no title'
grep -q '^- ' "$work/notes" || fail 'the notes say nothing'
