#!/bin/bash
# For the tests of packages, which install them on this machine's system under a temporary overlay, in namespaces
# of their own; sourced from the top of the sources.

fail() {
	echo "$(basename "$0" .sh): $*" >&2
	exit 1
}

# Exit code 77 means skipped, for the reason in the last line.
skip() {
	echo "$*"
	exit 77
}

# begin BINARY TOOL...: restarts the test in new namespaces. Sets binary, and work, a directory in memory that is
# removed at the end.
begin() {
	local given=${1-} tool
	[ "$given" ] || fail "no binary given: usage: $(basename "$0") BINARY"
	# shellcheck disable=SC2034 # used by those that source this
	binary=$(realpath "$given")
	shift
	[ "$(id -u)" -eq 0 ] || skip 'overlays and chroots need root'
	for tool in "$@" unshare; do
		command -v "$tool" >/dev/null || skip "$tool is not installed"
	done
	if [ "${VCC_IN_NAMESPACE-}" = '' ]; then
		VCC_IN_NAMESPACE=yes exec unshare --mount --net --pid --fork --propagation private "$0" "$given"
	fi
	work=$(mktemp -d)
	mount -t tmpfs -o size=512m tmpfs "$work"
	mkdir "$work"/{once,again,upper,below,root}
	trap leave EXIT
}

# shellcheck disable=SC2317 # called by trap
leave() {
	umount --recursive "$work" 2>/dev/null || umount --lazy "$work"
	rmdir "$work"
}

# packaged SCRIPT BINARY: its package, which must be reproducible: another time zone, locale and umask give the same
# bytes.
packaged() {
	local package again
	package=$("$1" "$2" "$work/once")
	again=$(TZ=Asia/Tokyo LC_ALL=C.UTF-8 bash -c 'umask 077; exec "$@"' - "$1" "$2" "$work/again")
	cmp "$package" "$again" || fail "two runs of $1 give different packages"
	echo "$package"
}

# Makes root: this machine's system, of which changes are forgotten.
make_root() {
	root=$work/root
	mount -t overlay overlay -o "lowerdir=/,upperdir=$work/upper,workdir=$work/below" "$root" 2>/dev/null ||
		skip 'the overlay file system is not available'
	mount --rbind /dev "$root/dev"
	mount -t proc proc "$root/proc"
	mount -t sysfs sysfs "$root/sys"
	mount -t bpf bpf "$root/sys/fs/bpf"
	mount -t tmpfs tmpfs "$root/run"
	mount -t tmpfs tmpfs "$root/tmp"
}

# inside COMMAND...: in the root.
inside() {
	chroot "$root" env -i HOME=/root TERM=dumb LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}
