#!/bin/sh
# Installs what is missing of the packages that building and testing vcc need. Does nothing, in
# no time, where all are there. With `test`, also what tests alone use; with `verify`, what
# scripts/verify.sh does.
set -eu

# clang compiles the kernel's part and llvm-strip makes it small; libclang reads the engine's
# headers; libbpf-dev and linux-libc-dev have the BPF headers; libelf and zlib are for the loader.
# haproxy is what the lab compares with.
packages='clang-16 llvm-16 clang-format-16 libclang1-16 libbpf-dev libelf-dev zlib1g-dev
linux-libc-dev pkg-config iproute2 ethtool haproxy'

fail() {
	echo "install-deps: $*" >&2
	exit 1
}

is_installed() {
	dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed
}

# Debian 12's own is too old for the 2024 edition. Tests want more: smoltcp is one of their guests.
rust=1.88
[ -z "${1-}" ] || rust=1.91
command -v cargo >/dev/null ||
	fail "cargo is missing: install Rust $rust or newer (https://rustup.rs)"
# The second word of `cargo --version`.
version=$(cargo --version | cut -d ' ' -f 2)
oldest=$(printf '%s.0\n%s\n' "$rust" "$version" | sort -V | head -n 1)
[ "$oldest" = "$rust.0" ] ||
	fail "cargo $version is too old: install Rust $rust or newer (https://rustup.rs)"
command -v cc >/dev/null || packages="gcc libc6-dev $packages"

# Nice to have: without them `make test` skips what they check.
for tool in rustfmt clippy; do
	name=$tool
	[ "$tool" != rustfmt ] || name=fmt
	if ! cargo "$name" --version >/dev/null 2>&1 && command -v rustup >/dev/null; then
		rustup component add "$tool" || echo "install-deps: goes on without $tool" >&2
	fi
done

# Elsewhere the packages have other names; the build says what it misses.
if ! command -v apt-get >/dev/null; then
	echo "install-deps: no apt-get here; see to it that these are there: $packages" >&2
	exit 0
fi

missing=
for package in $packages; do
	is_installed "$package" || missing="$missing $package"
done
# What tests alone look with: a browser at the live page and at that of the lab's results, linters and readers at what
# is packaged. Without one, the tests that need it are skipped.
wanted=
if [ "${1-}" = test ]; then
	for package in chromium shellcheck lintian dpkg-dev binutils man-db groff-base zsh fish \
		python3-venv; do
		is_installed "$package" || wanted="$wanted $package"
	done
	# A browser from elsewhere will do.
	if command -v chromium >/dev/null; then
		wanted=$(echo "$wanted" | sed 's/ chromium//')
	fi
fi
# A guest that is not Linux. Another is built by Go, whose release in Debian 12 is too old for it.
if [ "${1-}" = verify ]; then
	is_installed liblwip-dev || wanted=liblwip-dev
fi
[ -n "$missing$wanted" ] || exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
	if ! command -v sudo >/dev/null; then
		[ -z "$missing" ] || fail "these packages are missing, install them as root:$missing"
		echo "install-deps: goes on without$wanted" >&2
		exit 0
	fi
	as_root=sudo
fi

install() {
	echo "install-deps: installing $*"
	$as_root apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

export DEBIAN_FRONTEND=noninteractive
if [ -n "$missing" ]; then
	$as_root apt-get update -qq || fail 'apt-get update failed: is there a network?'
	# shellcheck disable=SC2086 # a list of words
	install $missing || fail "apt-get could not install$missing"
fi
if [ -n "$wanted" ]; then
	$as_root apt-get update -qq || true
	for package in $wanted; do
		install "$package" || echo "install-deps: goes on without $package" >&2
	done
fi
