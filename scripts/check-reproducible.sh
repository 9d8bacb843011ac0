#!/bin/bash
# Makes the release of the last commit twice, here and in a clone in another directory, with another time
# zone, locale and umask, and compares all files byte for byte. Takes two compilations for each architecture.
set -eu
cd "$(dirname "$0")/.."

fail() {
	echo "check-reproducible: $*" >&2
	exit 1
}

[ -z "$(git status --porcelain)" ] ||
	fail 'there are changes that are not committed, and a clone would lack them: commit or stash them'
scripts/install-deps.sh release
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
elsewhere=$work/another/directory
git clone --quiet --no-hardlinks . "$elsewhere"
scripts/release.sh "$work/here" >/dev/null
(
	umask 077
	unset CARGO_TARGET_DIR
	TZ=Asia/Tokyo LC_ALL=C.UTF-8 "$elsewhere/scripts/release.sh" "$work/there" >/dev/null
)
different=
while read -r file; do
	cmp "$work/here/$file" "$work/there/$file" || different="$different $file"
done < <(cd "$work" && find here there -type f -printf '%P\n' | sort -u)
[ -z "$different" ] || fail "two builds differ:$different"
echo "$(find "$work/here" -type f | wc -l) files of a release, $(du -sh "$work/here" | cut -f 1), made twice: equal"
