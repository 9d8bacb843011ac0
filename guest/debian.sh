#!/bin/sh
# Packages of Debian's, for the scripts that build guests. Sourced after a function `fail`, which prints a
# message and ends the script.

# Installs the packages that are missing: install_missing PURPOSE PACKAGE...
install_missing() {
	purpose=$1
	shift
	missing=
	for package; do
		dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null |
			grep -qx installed || missing="$missing $package"
	done
	[ -n "$missing" ] || return 0
	command -v apt-get >/dev/null || fail "these packages are missing:$missing"
	[ "$(id -u)" -eq 0 ] || fail "these packages are missing, install them as root:$missing"
	echo "$purpose: installing$missing" >&2
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq >&2 || fail 'apt-get update failed: check the network'
	# shellcheck disable=SC2086 # a list of words
	apt-get install -y -qq --no-install-recommends $missing >/dev/null ||
		fail "apt-get could not install$missing"
}

# Downloads packages of a suite, with its security updates, into an empty directory and unpacks them into
# DIR/root, without installing them and without a change of this machine's list of packages:
# download_packages DIR SUITE PACKAGE... Returns 77 if the suite does not have one of them.
download_packages() {
	directory=$1 suite=$2
	shift 2
	command -v apt-get >/dev/null || fail "only Debian can fetch $*"
	mkdir -p "$directory/lists/partial" "$directory/archives/partial"
	list_archive Debian http://deb.debian.org/debian "$suite" >"$directory/sources.list"
	case $suite in
	*-backports | sid) ;;
	*) list_archive Debian-Security http://security.debian.org/debian-security "$suite-security" \
		>>"$directory/sources.list" ;;
	esac
	apt_apart "$directory" apt-get update || fail "apt-get update from $suite: $(tail -n 3 "$directory/log")"
	for package; do
		apt_apart "$directory" apt-cache show "$package" || return 77
	done
	apt_apart "$directory" apt-get download "$@" ||
		fail "apt-get download $* from $suite: $(tail -n 3 "$directory/log")"
	for package in "$directory"/*.deb; do
		dpkg-deb -x "$package" "$directory/root" || fail "cannot unpack $package"
	done
	rm -rf "$directory/lists" "$directory/archives"
}

# A line of sources.list, with the mirror that this machine uses for it: list_archive LABEL MIRROR SUITE
list_archive() {
	# shellcheck disable=SC2016 # a variable of apt's
	mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' "Label: $1" | head -n 1)
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${mirror:-$2} $3 main"
}

# A command of apt with the lists of a directory instead of this machine's: apt_apart DIR COMMAND ARGUMENT...
apt_apart() {
	directory=$1 command=$2
	shift 2
	(cd "$directory" && "$command" -q -q -o "Dir::Etc::sourcelist=$directory/sources.list" \
		-o Dir::Etc::sourceparts=/dev/null -o "Dir::State::lists=$directory/lists" \
		-o "Dir::Cache=$directory" -o Dir::State::status=/dev/null \
		-o "APT::Sandbox::User=$(id -un)" "$@" >"$directory/log" 2>&1)
}
