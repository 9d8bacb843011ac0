#!/bin/sh
# Builds the lab's guest kernel unless it is cached, and prints its path.
#
#   build.sh [--release RELEASE] [CACHE]    release of Linux: 6.12 (default), or 7.2, whose TCP has
#                                           AccECN; cache directory: $XDG_CACHE_HOME/vcc or ~/.cache/vcc
#
# The kernel is Debian's source without the files that match `unneeded`, built as User-Mode Linux with the
# `defconfig`, the patches and the congestion control beside this script, and PVTCP. A change of any of these
# builds another kernel. A build takes 4 minutes on 2 CPUs and 400 MB of disk; the result takes 10 MB. 7.2 gets
# the patches of User-Mode Linux alone. Its source is in Debian's next release; of its packages, none is
# installed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
release=6.12
if [ "${1:-}" = --release ]; then
	release=$2
	shift 2
fi
cache=${1:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/vcc}

fail() {
	echo "guest kernel: $*" >&2
	exit 1
}

# shellcheck source=guest/debian.sh
. "$here/../debian.sh"

source=linux-source-$release
patches=$(echo "$here"/0*.patch "$here"/../pvtcp/6.12/*.patch)
fuzz=0
case $release in
6.12)
	archive=/usr/src/$source.tar.xz
	# For net/ipv4.
	set -- "$here/tcp_flood.c" "$here/../flood_tcp.h" "$here/../flood.h"
	;;
7.2)
	archive=
	set --
	patches=$(echo "$here"/0[1-5]-*.patch)
	fuzz=2 # lines beside HZ are others
	;;
*) fail "there is no recipe for release $release: say 6.12 or 7.2" ;;
esac

# shellcheck disable=SC2086 # a list of files
recipe=$({
	cat "$here/build.sh" "$here/../debian.sh" "$here/defconfig" "$here/unneeded" $patches "$@"
	echo "$release"
} | sha256sum | cut -c 1-12)
kernel=$cache/guest-kernel-$recipe/linux
if [ -x "$kernel" ]; then
	echo "$kernel"
	exit 0
fi

mkdir -p "$cache" || fail "cannot create $cache"
# A concurrent build waits here and then finds the first one's kernel.
exec 9>"$cache/guest-kernel.lock"
flock 9 || fail "cannot lock $cache/guest-kernel.lock"
rm -rf "$cache"/guest-kernel-build.*
if [ -x "$kernel" ]; then
	echo "$kernel"
	exit 0
fi

# shellcheck disable=SC2086 # a list of words
install_missing 'guest kernel' bc bison flex gcc libc6-dev make patch xz-utils ${archive:+$source}
[ -z "$archive" ] || [ -r "$archive" ] ||
	fail "the package $source is installed, but $archive is missing"

work=$(mktemp -d "$cache/guest-kernel-build.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
log=$work/log
echo "guest kernel: building $source, about 4 minutes" >&2

if [ -z "$archive" ]; then
	mkdir "$work/debian"
	download_packages "$work/debian" sid "$source" || fail "Debian sid has no $source now"
	archive=$work/debian/root/usr/src/$source.tar.xz
fi

# Three quarters of its files are of no use to the guest; to write and remove them would take minutes.
tar -xJf "$archive" -C "$work" --exclude-from="$here/unneeded" || fail "cannot unpack $archive"
cd "$work/$source"
for change in $patches; do
	patch -p1 --fuzz=$fuzz <"$change" >>"$log" 2>&1 ||
		fail "$(basename "$change") does not apply to $source: $(tail -n 3 "$log")"
done
[ $# -eq 0 ] || cp "$@" net/ipv4/
mkdir "$work/out"
cp "$here/defconfig" "$work/out/.config"
# Reproducible: no user, host or time in the binary.
build() {
	make ARCH=um O="$work/out" KBUILD_BUILD_TIMESTAMP='2000-01-01 00:00:00' KBUILD_BUILD_USER=vcc \
		KBUILD_BUILD_HOST=lab KBUILD_BUILD_VERSION=1 "$@" >>"$log" 2>&1 ||
		fail "make $* failed: $(tail -n 5 "$log")"
}
build olddefconfig
build -j "$(nproc)" linux
strip "$work/out/linux" -o "$work/linux"
mkdir -p "$(dirname "$kernel")"
# What a test plays.
if [ "$release" = 7.2 ]; then
	scripts=$source/tools/testing/selftests/net/packetdrill
	tar -xJf "$archive" -C "$work" "$scripts" || fail "cannot unpack $scripts"
	cp -r "$work/$scripts" "$(dirname "$kernel")/"
fi
mv "$work/linux" "$kernel"
echo "$kernel"
