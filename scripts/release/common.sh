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

# All timestamps are those of the sources' last change.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}
export SOURCE_DATE_EPOCH
umask 022
