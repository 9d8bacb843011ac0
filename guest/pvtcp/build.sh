#!/bin/sh
# Builds Debian packages of a Linux kernel with PVTCP, for guests, and prints their paths: Debian's source and
# configuration with the patches beside this script.
#
#   build.sh [--release RELEASE] [--config FILE] [--check [--module DIRECTORY] | DIR]
#
#   --release RELEASE   6.12 (default), of Debian 13, or 7.3, of its backports
#   --config FILE       a configuration; default: Debian's for virtual machines (cloud-amd64, cloud-arm64)
#   --check             only compiles what the patches touch, and prints its names
#   --module DIRECTORY  with --check: also compiles the module there
#   DIR                 where the packages go; default: pvtcp-kernel
#
# As root it installs missing packages that the build needs. It exits with 77 if Debian does not have the
# release now: backports move on to newer ones. With Debian's configuration the build takes some
# hours of CPU time, and several GB of disk below TMPDIR (/var/tmp).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
release=6.12
config=
check=
module=

fail() {
	echo "PVTCP's kernel: $*" >&2
	exit 1
}

# shellcheck source=guest/debian.sh
. "$here/../debian.sh"

while [ $# -gt 0 ]; do
	case $1 in
	--release | --config | --module)
		[ $# -ge 2 ] || fail "$1 lacks its value"
		case $1 in
		--release) release=$2 ;;
		--config) config=$2 ;;
		--module) module=$2 ;;
		esac
		shift 2
		;;
	--check)
		check=1
		shift
		;;
	-*) fail "unknown option $1: there are --release, --config, --check and --module" ;;
	*) break ;;
	esac
done
[ $# -le 1 ] || fail "one directory, not $*"
out=${1:-pvtcp-kernel}
case $release in
6.12) suite=trixie ;;
7.3) suite=trixie-backports ;;
*) fail "there are no patches for release $release: choose 6.12 or 7.3" ;;
esac
if [ -n "$config" ]; then
	[ -r "$config" ] || fail "cannot read the configuration $config"
	config=$(realpath "$config")
fi
grep -qs '^ID=debian$' /etc/os-release || fail 'it needs Debian: elsewhere, apply the patches to your own kernel'
architecture=$(dpkg --print-architecture)
case $architecture in
amd64 | arm64) ;;
*) [ -n "$config" ] || fail "Debian has no configuration for virtual machines on $architecture: pass --config" ;;
esac

install_missing "PVTCP's kernel" bc bison dpkg-dev flex gcc libc6-dev libdw-dev libelf-dev libssl-dev make patch \
	python3 xz-utils
# What makes packages, and the BTF of Debian's configuration.
[ -n "$check" ] || install_missing "PVTCP's kernel" cpio debhelper dwarves kmod rsync

if [ -z "$check" ]; then
	mkdir -p "$out" || fail "cannot create $out"
	out=$(cd "$out" && pwd)
fi
work=$(mktemp -d "${TMPDIR:-/var/tmp}/pvtcp-kernel.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
log=$work/log

source=linux-source-$release
mkdir "$work/debian"
download_packages "$work/debian" "$suite" "$source" "linux-config-$release" || {
	echo "PVTCP's kernel: $suite has no $source now: choose another release, or apply the patches yourself" >&2
	exit 77
}
version=$(dpkg-deb -f "$work/debian/$source"_*.deb Version)
tar -xJf "$work/debian/root/usr/src/$source.tar.xz" -C "$work" ${check:+--exclude-from="$here/../kernel/unneeded"} ||
	fail "cannot unpack $source $version"
rm "$work/debian/$source"_*.deb "$work/debian/root/usr/src/$source.tar.xz"
cd "$work/$source"
for change in "$here/$release"/*.patch; do
	patch -p1 --fuzz=0 <"$change" >"$log" 2>&1 ||
		fail "$(basename "$change") does not apply to $source $version: $(tail -n 3 "$log")"
done
if [ -n "$config" ]; then
	cp "$config" .config
else
	xz -dc "$work/debian/root/usr/src/linux-config-$release/config.${architecture}_none_cloud-$architecture.xz" \
		>.config || fail "linux-config-$release has no configuration cloud-$architecture"
fi
# Debian signs its modules elsewhere, and has the debugging symbols in a package of their own.
export DEB_BUILD_PROFILES=pkg.linux-upstream.nokerneldbg
build() {
	make LOCALVERSION=-pvtcp KDEB_PKGVERSION="$version+pvtcp1" KDEB_CHANGELOG_DIST="$suite" \
		KBUILD_BUILD_USER=vcc KBUILD_BUILD_HOST=pvtcp DEBFULLNAME=vcc DEBEMAIL=vcc@localhost "$@" \
		>>"$log" 2>&1 || fail "make $*: $(grep -A 3 'error' "$log" | tail -n 12; tail -n 12 "$log")"
}
build olddefconfig
if [ -z "$check$config" ] && ! grep -qx 'CONFIG_DEBUG_INFO_BTF=y' .config; then
	fail 'no BTF, which vcc-guest needs: pahole (package dwarves) is missing or too old'
fi
if [ -n "$check" ]; then
	objects=$(sed -n 's|^+++ b/\(.*\)\.c$|\1.o|p' "$here/$release"/*.patch)
	# shellcheck disable=SC2086 # a list of words
	build -j "$(nproc)" $objects
	for object in $objects; do
		[ -s "$object" ] || fail "there is no $object"
	done
	if [ -n "$module" ]; then
		build M="$module" "$(basename "$module"/*.c .c).o"
	fi
	echo "Linux $version with PVTCP: compiled $(echo "$objects" | paste -sd ' ')"
	exit 0
fi
echo "PVTCP's kernel: building Linux $version, $(grep -c '=[ym]$' .config) options" >&2
build -j "$(nproc)" bindeb-pkg
for package in image headers; do
	mv "$work/linux-$package-"*.deb "$out/" || fail "the build made no package linux-$package"
	ls "$out/linux-$package-"*-pvtcp_"$version"*.deb
done
