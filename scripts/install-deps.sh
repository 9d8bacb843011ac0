#!/bin/sh
# Installs missing packages that building vcc needs; returns at once if none is missing. With `test`,
# also the packages that only tests use; with `verify`, those of scripts/verify.sh; with `release`, what
# builds for the other architecture of a release, whose library packages are made known to apt.
set -eu

# clang compiles the BPF programs and llvm-strip strips them; libclang is for bindgen; libbpf-dev and
# linux-libc-dev provide the BPF headers; libelf and zlib are the loader's. The lab compares vcc with
# haproxy.
# Debian 12 has LLVM 16, whose clang-format made the sources look as they do; Debian 13 has LLVM 19.
llvm=16
if grep -qs '^VERSION_ID="1[3-9]"' /etc/os-release && ! command -v clang-16 >/dev/null; then
	llvm=19
fi
packages="clang-$llvm llvm-$llvm libclang1-$llvm libbpf-dev libelf-dev zlib1g-dev linux-libc-dev pkg-config
iproute2 ethtool haproxy"
[ "$llvm" -ne 16 ] || packages="$packages clang-format-16"

fail() {
	echo "install-deps: $*" >&2
	exit 1
}

# Another architecture's package of the same name is not enough.
is_installed() {
	dpkg-query --show --showformat='${Architecture} ${db:Status-Status}\n' "$1" 2>/dev/null |
		grep -qE "^(all|$(echo "$1" | grep -o '[^:]*$' | grep -xE 'amd64|arm64' || dpkg --print-architecture)) installed$"
}

# Debian 12's Rust is too old for the 2024 edition; kube needs 1.89, and the tests 1.91 for smoltcp.
rust=1.89
[ -z "${1-}" ] || rust=1.91
command -v cargo >/dev/null ||
	fail "cargo is missing: install Rust $rust or newer (https://rustup.rs)"
# The second word of `cargo --version`.
version=$(cargo --version | cut -d ' ' -f 2)
oldest=$(printf '%s.0\n%s\n' "$rust" "$version" | sort -V | head -n 1)
[ "$oldest" = "$rust.0" ] ||
	fail "cargo $version is too old: install Rust $rust or newer (https://rustup.rs)"
command -v cc >/dev/null || packages="gcc libc6-dev $packages"

# Optional: without them, `make test` skips their checks.
for tool in rustfmt clippy; do
	name=$tool
	[ "$tool" != rustfmt ] || name=fmt
	if ! cargo "$name" --version >/dev/null 2>&1 && command -v rustup >/dev/null; then
		rustup component add "$tool" || echo "install-deps: continuing without $tool" >&2
	fi
done

# Other distributions have other package names; the build reports what is missing.
if ! command -v apt-get >/dev/null; then
	echo "install-deps: no apt-get: install the equivalents of these Debian packages: $packages" >&2
	exit 0
fi

missing=
for package in $packages; do
	is_installed "$package" || missing="$missing $package"
done
# A compiler, libraries and Rust's standard library for the other architecture; what makes packages.
if [ "${1-}" = release ]; then
	case $(dpkg --print-architecture) in
	amd64) other=arm64 gnu=aarch64-linux-gnu ;;
	arm64) other=amd64 gnu=x86-64-linux-gnu ;;
	*) fail 'a release is made on amd64 or arm64' ;;
	esac
	for package in "gcc-$gnu" "libelf-dev:$other" "zlib1g-dev:$other" dpkg-dev rpm binutils; do
		is_installed "$package" || missing="$missing $package"
	done
	triple=$(echo "$gnu" | sed -e 's/x86-64/x86_64/' -e 's/-linux/-unknown-linux/')
	if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$triple/lib" ]; then
		command -v rustup >/dev/null ||
			fail "Rust has no standard library for $triple, and there is no rustup to install it"
		rustup target add "$triple"
	fi
fi
# Used by tests only: a browser for the live page and the lab's report, linters for scripts and
# package, readers for man pages and completions, readers of container images, QEMU for a guest behind
# `vcc domain`, and with busybox and xz for Debian's kernels, Open vSwitch for a port of it, Prometheus'
# promtool for the alerts. Tests whose tool is missing are skipped.
wanted=
if [ "${1-}" = test ]; then
	for package in chromium shellcheck lintian rpm dpkg-dev binutils man-db groff-base zsh fish \
		python3-venv qemu-system-x86 busybox-static xz-utils skopeo umoci; do
		is_installed "$package" || wanted="$wanted $package"
	done
	# Their packages start a service where systemd runs.
	for package in openvswitch-switch prometheus; do
		[ -d /run/systemd/system ] || is_installed "$package" || wanted="$wanted $package"
	done
	# Any chromium in PATH will do.
	if command -v chromium >/dev/null; then
		wanted=$(echo "$wanted" | sed 's/ chromium//')
	fi
fi
# lwIP, iPXE and GRUB are guests that are not Linux, and PyTCP, which pip installs; slirp4netns ends a Linux
# guest's connections. netstack, another one, needs a newer Go than Debian 12's. tshark and tcpdump read
# recordings. QEMU and passt are for virtual machines (live-domain), QEMU and busybox for Debian's kernels;
# the runtime of clang's sanitizers is a package of its own.
if [ "${1-}" = verify ]; then
	for package in tshark tcpdump liblwip-dev ipxe ovmf grub-common grub-efi-amd64-bin python3-venv qemu-system-x86 \
		busybox-static xz-utils passt slirp4netns "libclang-rt-$llvm-dev"; do
		is_installed "$package" || wanted="$wanted $package"
	done
fi
[ -n "$missing$wanted" ] || exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
	if ! command -v sudo >/dev/null; then
		[ -z "$missing" ] || fail "these packages are missing, install them as root:$missing"
		echo "install-deps: continuing without$wanted" >&2
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
	[ -z "${other-}" ] || $as_root dpkg --add-architecture "$other"
	$as_root apt-get update -qq || fail 'apt-get update failed: check the network'
	# shellcheck disable=SC2086 # a list of words
	install $missing || fail "apt-get could not install$missing"
fi
if [ -n "$wanted" ]; then
	$as_root apt-get update -qq || true
	for package in $wanted; do
		install "$package" || echo "install-deps: continuing without $package" >&2
	done
fi
