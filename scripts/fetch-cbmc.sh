#!/bin/sh
# Prints the path of a bounded model checker, CBMC 6 or newer: the installed one, or Debian 13's, which
# is taken apart below the cache directory together with the libraries that it needs, and with CaDiCaL
# next to it: Debian's CBMC has MiniSat alone, which takes three times as long. 100 MB.
#
# Exit code 77: it is not installed, and this machine cannot fetch it.
#
#   fetch-cbmc.sh [CACHE]    cache directory; default: $XDG_CACHE_HOME/vcc or ~/.cache/vcc
set -eu
cache=${1:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/vcc}
suite=trixie
packages='cbmc cadical minisat libc6 libgcc-s1 libstdc++6 zlib1g'

fail() {
	echo "fetch-cbmc: $*" >&2
	exit 1
}

if command -v cbmc >/dev/null && [ "$(cbmc --version | cut -d . -f 1)" -ge 6 ]; then
	command -v cbmc
	exit 0
fi
recipe=$(sha256sum "$0" | cut -c 1-12)
root=$cache/cbmc-$recipe
if [ -d "$root" ]; then
	echo "$root/cbmc"
	exit 0
fi
if [ "$(dpkg --print-architecture 2>/dev/null)" != amd64 ]; then
	echo 'CBMC 6 is not installed (https://www.cprover.org/cbmc), and only Debian on amd64 can fetch it' >&2
	exit 77
fi

mkdir -p "$cache" || fail "cannot create $cache"
exec 9>"$cache/cbmc.lock"
flock 9 || fail "cannot lock $cache/cbmc.lock"
if [ -d "$root" ]; then
	echo "$root/cbmc"
	exit 0
fi
rm -rf "$cache"/cbmc-build.*
work=$(mktemp -d "$cache/cbmc-build.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# The machine's own list of packages is left alone.
# shellcheck disable=SC2016 # a variable of apt's
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Label: Debian' | head -n 1)
[ -n "$mirror" ] || mirror=http://deb.debian.org/debian
mkdir -p "$work/lists/partial" "$work/archives/partial" "$work/root"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" \
	>"$work/sources.list"
apt() {
	apt-get -qq -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work" \
		-o Dir::State::status=/dev/null -o "APT::Sandbox::User=$(id -un)" "$@" 2>"$work/log" ||
		fail "apt-get $1: $(tail -n 3 "$work/log")"
}
apt update
# shellcheck disable=SC2086 # a list of words
(cd "$work" && apt download $packages)
for package in "$work"/*.deb; do
	dpkg-deb -x "$package" "$work/root" || fail "cannot take $package apart"
done
rm -rf "$work"/*.deb "$work/lists" "$work/archives"

libraries=usr/lib/x86_64-linux-gnu
for command in cbmc cadical; do
	cat >"$work/$command" <<EOF
#!/bin/sh
root=$root/root
exec "\$root/$libraries/ld-linux-x86-64.so.2" --library-path "\$root/$libraries:\$root/usr/lib" \\
	"\$root/usr/bin/$command" "\$@"
EOF
	chmod +x "$work/$command"
done
mv "$work" "$root"
trap - EXIT
for command in cbmc cadical; do
	"$root/$command" --version >/dev/null || fail "$root/$command does not run"
done
echo "$root/cbmc"
