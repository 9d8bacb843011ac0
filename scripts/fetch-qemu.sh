#!/bin/sh
# Prints the path of QEMU for x86 that hands over the state of a card by vhost-user, 10.0 or newer: the
# installed one, or Debian 13's, which is taken apart below the cache directory together with the
# libraries that it needs. 250 MB.
#
# Exit code 77: it is not installed, and this machine cannot fetch it. With --cached, likewise unless it
# is there.
#
#   fetch-qemu.sh [--cached] [CACHE]    cache directory; default: $XDG_CACHE_HOME/vcc or ~/.cache/vcc
set -eu
only_cached=
if [ "${1-}" = --cached ]; then
	only_cached=1
	shift
fi
cache=${1:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/vcc}
suite=trixie
command=qemu-system-x86_64

fail() {
	echo "fetch-qemu: $*" >&2
	exit 1
}

major() {
	"$command" --version | sed -n 's/^QEMU emulator version \([0-9]*\).*/\1/p'
}

if command -v "$command" >/dev/null && [ "$(major)" -ge 10 ]; then
	command -v "$command"
	exit 0
fi
recipe=$(sha256sum "$0" | cut -c 1-12)
root=$cache/qemu-$recipe
if [ -d "$root" ]; then
	echo "$root/$command"
	exit 0
fi
[ -z "$only_cached" ] || exit 77
if [ "$(dpkg --print-architecture 2>/dev/null)" != amd64 ]; then
	echo 'QEMU 10 is not installed (https://www.qemu.org), and only Debian on amd64 can fetch it' >&2
	exit 77
fi

mkdir -p "$cache" || fail "cannot create $cache"
exec 9>"$cache/qemu.lock"
flock 9 || fail "cannot lock $cache/qemu.lock"
if [ -d "$root" ]; then
	echo "$root/$command"
	exit 0
fi
rm -rf "$cache"/qemu-build.*
work=$(mktemp -d "$cache/qemu-build.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# The machine's own list of packages is left alone and so is what is installed; neither is considered.
# shellcheck disable=SC2016 # a variable of apt's
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Label: Debian' | head -n 1)
[ -n "$mirror" ] || mirror=http://deb.debian.org/debian
mkdir -p "$work/lists/partial" "$work/archives/partial" "$work/root"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" \
	>"$work/sources.list"
: >"$work/status"
apt() {
	apt-get -qq -y -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work" \
		-o "Dir::State::status=$work/status" -o "APT::Sandbox::User=$(id -un)" "$@" \
		>"$work/log" 2>&1 || fail "apt-get $1: $(tail -n 3 "$work/log")"
}
apt update
apt install --download-only --no-install-recommends qemu-system-x86
for package in "$work"/archives/*.deb; do
	dpkg-deb -x "$package" "$work/root" || fail "cannot take $package apart"
done
rm -rf "$work/lists" "$work/archives" "$work/root/usr/share/doc" "$work/root/usr/share/locale"

libraries=usr/lib/x86_64-linux-gnu
cat >"$work/$command" <<EOF
#!/bin/sh
root=$root/root
exec "\$root/$libraries/ld-linux-x86-64.so.2" --library-path "\$root/$libraries:\$root/usr/lib" \\
	"\$root/usr/bin/$command" -L "\$root/usr/share/qemu" -L "\$root/usr/share/seabios" \\
	-L "\$root/usr/lib/ipxe/qemu" "\$@"
EOF
chmod +x "$work/$command"
mv "$work" "$root"
trap - EXIT
"$root/$command" --version >/dev/null || fail "$root/$command does not run"
echo "$root/$command"
