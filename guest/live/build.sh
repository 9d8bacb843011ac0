#!/bin/sh
# Makes a guest for QEMU unless it is cached, and prints its directory: `vmlinuz` and `initrd`.
#
#   build.sh [--cached] [--pvtcp RELEASE] [CACHE]    cache directory; default: $XDG_CACHE_HOME/vcc or
#                                                    ~/.cache/vcc
#
# With --cached, it fails unless the guest is there.
#
# The kernel is Debian's for virtual machines, with busybox, bpftool and the `init` beside this
# script. The packages are taken apart, not installed. It takes 15 MB. With --pvtcp, the kernel has
# PVTCP and the `defconfig`, and is built, which takes 4 minutes on 2 CPUs.
set -eu
only_cached=
if [ "${1-}" = --cached ]; then
	only_cached=1
	shift
fi
pvtcp=
if [ "${1-}" = --pvtcp ]; then
	pvtcp=$2
	shift 2
fi
here=$(cd "$(dirname "$0")" && pwd)
cache=${1:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/vcc}
kernel=linux-image-cloud-amd64
# In the order of their dependencies.
modules='virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci failover
net_failover virtio_net'

fail() {
	echo "live guest: $*" >&2
	exit 1
}

set -- "$here/build.sh" "$here/init"
[ -z "$pvtcp" ] || set -- "$@" "$here/defconfig" "$here/../debian.sh" "$here/../pvtcp/build.sh" \
	"$here/../pvtcp/$pvtcp"/*.patch
recipe=$( (cat "$@" && echo "$pvtcp") | sha256sum | cut -c 1-12)
guest=$cache/live-guest-$recipe
if [ -d "$guest" ]; then
	echo "$guest"
	exit 0
fi
[ -z "$only_cached" ] || fail "it is not in $cache"
[ "$(dpkg --print-architecture 2>/dev/null)" = amd64 ] || fail 'it needs Debian on amd64'

mkdir -p "$cache" || fail "cannot create $cache"
exec 9>"$cache/live-guest.lock"
flock 9 || fail "cannot lock $cache/live-guest.lock"
if [ -d "$guest" ]; then
	echo "$guest"
	exit 0
fi
rm -rf "$cache"/live-guest-build.*
work=$(mktemp -d "$cache/live-guest-build.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

apt-cache show bpftool >/dev/null 2>&1 || apt-get update -qq >&2 || fail 'apt-get update failed: check the network'
image=
if [ -n "$pvtcp" ]; then
	sh "$here/../pvtcp/build.sh" --release "$pvtcp" --config "$here/defconfig" "$work" >/dev/null ||
		fail 'cannot build its kernel; see the message above'
	rm "$work"/linux-headers-*.deb
else
	image=$(apt-cache depends "$kernel" | sed -n 's/^ *Depends: \(linux-image-\)/\1/p')
	[ -n "$image" ] || fail "no package $kernel"
fi
# apt drops root to download; a directory that it cannot write makes it warn.
programs="busybox-static $(apt-cache depends --recurse --important bpftool | grep '^[a-z]')"
# shellcheck disable=SC2086 # a list of words
(cd "$work" && apt-get download -qq $image $programs 2>"$work/log") ||
	fail "cannot download $image $programs: $(tail -n 3 "$work/log")"
for package in "$work"/*.deb; do
	dpkg-deb -x "$package" "$work/packages"
done

root=$work/root
mkdir -p "$root/bin" "$root/lib" "$work/out"
cp "$work/packages/bin/busybox" "$root/bin/"
cp "$here/init" "$root/init"
# With the libraries that it loads.
find "$work/packages" -path '*bin/bpftool' -exec cp {} "$root/bin/" \;
find "$work/packages" \( -name 'libelf[.-]*' -o -name 'libz.*' -o -name 'libcap.*' -o -name libc.so.6 \) \
	-name '*.so*' -exec cp -P {} "$root/lib/" \;
mkdir "$root/lib64"
find "$work/packages" -name 'ld-linux-x86-64.so.2' -exec cp -L {} "$root/lib64/" \;
[ -x "$root/bin/bpftool" ] || fail 'bpftool has no program of that name'
chmod 755 "$root/init"
for module in $modules; do
	find "$work/packages/lib/modules" -name "$module.ko" -exec cp {} "$root/lib/" \;
	[ -e "$root/lib/$module.ko" ] || fail "its kernel has no module $module"
	echo "$module" >>"$root/lib/modules"
done
(cd "$root" && find . | "$root/bin/busybox" cpio -o -H newc -R 0:0 2>/dev/null | gzip -n -9) \
	>"$work/out/initrd" || fail 'cannot pack the initrd'
cp "$work"/packages/boot/vmlinuz-* "$work/out/vmlinuz"
mv "$work/out" "$guest"
echo "$guest"
