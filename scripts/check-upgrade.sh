#!/bin/bash
# Takes a host from other versions of vcc to this one and back, in the middle of transfers: from the last
# release, and from a version that is this one but for the layout of its maps. Builds both.
#
#   check-upgrade.sh [--sources | --last]    --sources: makes only the sources of the second, which says
#                                            whether they can still be made of these
#                                            --last: builds only the last release, and prints its path
# shellcheck disable=SC2086 # CARGO may be several words
set -eu
cd "$(dirname "$0")/.."

CARGO=${CARGO:-cargo}
# Until there is a release: the last commit before versions took ports over from each other.
BEFORE_THE_FIRST=f5e82d81

fail() {
	echo "check-upgrade: $*" >&2
	exit 1
}

work=$(realpath -m "${CARGO_TARGET_DIR:-target}")/upgrade
mkdir -p "$work"

# The sources of a commit in a directory; files that are the same keep their times, so cargo builds again
# only what has changed.
sources() {
	git rev-parse --verify --quiet "$1^{commit}" >/dev/null ||
		fail "the history lacks $1: fetch it (git fetch --unshallow --tags)"
	mkdir -p "$2" "$work/fresh"
	git archive "$1" | tar --extract --directory "$work/fresh"
	rsync_by_content "$work/fresh" "$2"
	rm -rf "$work/fresh"
}

rsync_by_content() {
	local file
	# Not what cargo has built of them.
	(cd "$2" && find . -path ./target -prune -o -type f -print) | while read -r file; do
		[ -e "$1/$file" ] || rm "$2/$file"
	done
	(cd "$1" && find . -type f) | while read -r file; do
		cmp --silent "$1/$file" "$2/$file" || install -D "$1/$file" "$2/$file"
	done
}

build() {
	(cd "$1" && CARGO_TARGET_DIR=$1/target $CARGO build --quiet --package vcc) >&2
	echo "$1/target/debug/vcc"
}

released=$(git describe --tags --match 'v*' --abbrev=0 2>/dev/null || echo "$BEFORE_THE_FIRST")
if [ "${1:-}" = --last ]; then
	sources "$released" "$work/$released"
	build "$work/$released"
	exit
fi

# Fields of a flow, a key and a port change places. The programs have little room on their stacks, and not every
# order leaves it to them.
sources HEAD "$work/other"
version=$(sed -n 's/^#define LAYOUT_VERSION \([0-9]*\)u$/\1/p' datapath/abi.h)
sed -i "s/^#define LAYOUT_VERSION .*/#define LAYOUT_VERSION $((version + 1000))u/" "$work/other/datapath/abi.h"
swap() {
	perl -0pi -e 's/(\n\t'"$2"';[^\n]*)(\n\t'"$3"';[^\n]*)/$2$1/ or die "no $ARGV has these two\n"' "$work/other/$1"
}
swap engine/vcc.h 'uint32_t rcv_wup' 'uint32_t rcv_edge'
swap engine/vcc.h 'uint8_t wscale_peer' 'uint8_t wscale_shown'
swap datapath/abi.h 'uint16_t vlan' 'uint16_t port' # of a neighbour's key or a connection's
swap datapath/abi.h 'uint32_t by_policy' 'uint32_t inside'
[ "${1:-}" != --sources ] || exit 0

sources "$released" "$work/$released"
VCC_VERSIONS=$(build "$work/$released"):$(build "$work/other")
export VCC_VERSIONS
$CARGO test --package vcc --test command from_other_versions -- --ignored --nocapture
