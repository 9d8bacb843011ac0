#!/bin/sh
# For the scripts of a release; sourced from the top of the sources.

fail() {
	echo "$(basename "$0" .sh): $*" >&2
	exit 1
}

# The architectures of a release, as Debian names them.
# shellcheck disable=SC2034 # used by those that source this
architectures='amd64 arm64'

# What Rust calls the target of a Debian architecture.
triple_of() {
	case $1 in
	amd64) echo x86_64-unknown-linux-gnu ;;
	arm64) echo aarch64-unknown-linux-gnu ;;
	*) fail "Debian's architecture $1 is not among $architectures" ;;
	esac
}

# What GNU calls it: the prefix of its tools, and Debian's directory of its libraries.
gnu_of() {
	case $1 in
	amd64) echo x86_64-linux-gnu ;;
	arm64) echo aarch64-linux-gnu ;;
	*) fail "Debian's architecture $1 is not among $architectures" ;;
	esac
}

# Debian's architecture of a binary.
architecture_of() {
	machine=$(LC_ALL=C readelf --file-header "$1" | sed -n 's/^ *Machine: *//p')
	case $machine in
	*X86-64) echo amd64 ;;
	AArch64) echo arm64 ;;
	*) fail "$1 is for '$machine', which is none of $architectures" ;;
	esac
}

# The version of the sources.
version_of_sources() {
	sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml
}

# begin_package BINARY [DIRECTORY]: where a script that packages a binary begins. Sets its architecture and gnu
# name, its path and name, version, the output directory, and work, a directory that is removed at the end.
begin_package() {
	[ -x "${1:-}" ] || fail "'${1:-}' is no binary: make build first"
	architecture=$(architecture_of "$1")
	gnu=$(gnu_of "$architecture")
	binary=$(realpath "$1")
	name=$(basename "$binary")
	case $name in
	vcc | vcc-lab | vcc-guest) ;;
	*) fail "$binary is none of the commands, which are vcc, vcc-lab and vcc-guest" ;;
	esac
	here=${VCC_HERE:+$(realpath "$VCC_HERE")}
	version=$(version_of_sources)
	runs=${here:-$(dirname "$binary")}/$name
	[ "$("$runs" --version)" = "$name $version" ] ||
		fail "$runs is $("$runs" --version), Cargo.toml says $version: make build"
	mkdir -p "${2:-.}"
	# shellcheck disable=SC2034 # used by those that source this
	output=$(realpath "${2:-.}")
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
}

# require_tools PACKAGES TOOL...: Debian's packages have these.
require_tools() {
	packages=$1
	shift
	for tool; do
		command -v "$tool" >/dev/null || fail "$tool is missing: apt-get install $packages"
	done
}

# install_binary ROOT PREFIX [NAME=VALUE...]: the binary that a package began with and all that belongs to it.
install_binary() {
	below=$1
	prefix=$2
	shift 2
	variable=$(echo "$name" | tr a-z- A-Z_)
	env -u VCC -u VCC_LAB -u VCC_GUEST DESTDIR="$below" PREFIX="$prefix" "$variable=$binary" VCC_HERE="$here" "$@" \
		scripts/install.sh install >&2
	"$gnu-strip" --strip-unneeded --remove-section=.comment --remove-section=.note "$below$prefix/bin/$name"
}

# date_all ROOT
date_all() {
	find "$1" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
}

# All timestamps are those of the sources' last change.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}
export SOURCE_DATE_EPOCH
umask 022
