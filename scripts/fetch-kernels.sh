#!/bin/sh
# Prints Debian's kernels for x86, a line each, the oldest first: release, distribution, and the
# directory of `vmlinuz` and `modules/`, with tabs between them. They are taken apart below the cache
# directory, with the modules that scripts/check-kernels.sh loads and no others. 250 MB are downloaded
# and 220 MB are kept. Where the archive has only the image, `modules/` has the file `lack`, which names
# what is missing.
#
# There is a kernel of each minor version in the distributions below, the newest of it, and with
# PREEMPT_RT the ones of 6.12 and of the newest. Which these are is found out once: for newer ones,
# remove the directory.
#
# Exit code 77: this machine cannot fetch them, and they are not cached.
#
#   fetch-kernels.sh [--short] [CACHE]    cache directory; default: $XDG_CACHE_HOME/vcc or ~/.cache/vcc
#
# With --short, only the oldest kernel that vcc supports and the newest that has modules.
set -eu
short=
if [ "${1-}" = --short ]; then
	short=1
	shift
fi
cache=${1:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/vcc}
suites='bookworm bookworm-backports trixie trixie-backports sid'
# TCX, to which vcc attaches, is of 6.6.
oldest=6.12
# What some kernel has built in is no module there.
modules='veth bridge dummy tun sch_tbf sch_red sch_fq_codel sch_fq sch_netem sch_ingress tcp_dctcp tcp_cubic
tcp_diag'

fail() {
	echo "fetch-kernels: $*" >&2
	exit 1
}

skip() {
	echo "$*" >&2
	exit 77
}

recipe=$(sha256sum "$0" | cut -c 1-12)
root=$cache/kernels-$recipe

# The lines of the list that are wanted.
wanted() {
	if [ -n "$short" ]; then
		grep -v -e '-rt-' "$root/list" | while IFS= read -r line; do
			[ -e "$root/${line%%	*}/modules/lack" ] || echo "$line"
		done | awk -F '\t' -v oldest="$oldest." '
			index($1, oldest) == 1 { print }
			{ last = $0 }
			END { print last }'
	else
		cat "$root/list"
	fi
}

# Of the cached ones, those that are complete. Fails if one is not.
print() {
	wanted | while IFS="$(printf '\t')" read -r release distribution; do
		[ -d "$root/$release" ] || exit 1
		printf '%s\t%s\t%s\n' "$release" "$distribution" "$root/$release"
	done
}

if [ -e "$root/list" ] && lines=$(print); then
	echo "$lines"
	exit 0
fi
[ "$(dpkg --print-architecture 2>/dev/null)" = amd64 ] ||
	skip "the kernels are packages of Debian's, which only Debian on amd64 can fetch"
command -v xz >/dev/null || skip 'xz is not installed (package xz-utils)'

mkdir -p "$root" || fail "cannot create $root"
exec 9>"$cache/kernels.lock"
flock 9 || fail "cannot lock $cache/kernels.lock"
rm -rf "$cache"/kernels-build.*
work=$(mktemp -d "$cache/kernels-build.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# The machine's own lists of packages are left alone.
# shellcheck disable=SC2016 # a variable of apt's
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Label: Debian' | head -n 1)
[ -n "$mirror" ] || mirror=$(cat /etc/apt/sources.list.d/*.sources 2>/dev/null |
	sed -n 's,^URIs: *\(.*/debian\)/*$,\1,p' | head -n 1)
[ -n "$mirror" ] || mirror=$(sed -n 's,^deb .*\(https\?://[^ ]*/debian\)/* .*,\1,p' \
	/etc/apt/sources.list 2>/dev/null | head -n 1)
[ -n "$mirror" ] || skip "apt's sources name no mirror of Debian"
mkdir -p "$work/lists/partial" "$work/archives/partial"
for suite in $suites; do
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main"
done >"$work/sources.list"
: >"$work/status"
apt() {
	program=$1
	shift
	"$program" -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work" \
		-o "Dir::State::status=$work/status" -o "APT::Sandbox::User=$(id -un)" \
		-o Acquire::Languages=none "$@" 2>>"$work/log"
}
apt apt-get -qq update >>"$work/log" || skip "apt-get update: $(tail -n 1 "$work/log")"

# The newest of each minor version. A kernel for virtual machines is smaller than one for all PCs.
if [ ! -e "$root/list" ]; then
	apt apt-cache search --names-only '^linux-image-[0-9.]+[^ ]*-(cloud|rt)-amd64$' |
		sed 's/^linux-image-\([^ ]*\) .*/\1/' | sort -V >"$work/releases"
	newest=$(sed -n 's/^\([0-9]*\.[0-9]*\).*/\1/p' "$work/releases" | tail -n 1)
	for flavour in cloud rt; do
		grep -e "-$flavour-" "$work/releases" | awk -F '[.+-]' '{ last[$1 "." $2] = $0 }
			END { for (minor in last) print minor, last[minor] }' | sort -V |
			while read -r minor release; do
				[ $flavour = cloud ] || [ "$minor" = "$oldest" ] || [ "$minor" = "$newest" ] || continue
				suite=$(apt apt-cache madison "linux-image-$release" | awk -F '[|] *' '{ print $3 }' |
					awk '{ print $2 }' | head -n 1)
				printf '%s\t%s\n' "$release" "${suite%/main}"
			done
	done >"$work/list"
	[ -s "$work/list" ] || skip "$mirror has no kernels"
	mv "$work/list" "$root/list"
fi

# decompress FILE TARGET: modules are compressed since Debian 13.
decompress() {
	case $1 in
	*.xz) xz -dc "$1" >"$2" ;;
	*) cp "$1" "$2" ;;
	esac
}

# take MODULE: after the modules that it depends on, which a module names itself.
take() {
	[ ! -e "$out/modules/$1.ko" ] || return 0
	# A `-` in a file's name is a `_` in that of the module.
	file=$(find "$work/packages" -name "$(echo "$1" | sed 's/_/[_-]/g').ko*" | head -n 1)
	[ -n "$file" ] || return 0
	decompress "$file" "$out/modules/$1.ko"
	for dependency in $(tr '\0' '\n' <"$out/modules/$1.ko" | sed -n 's/^depends=//p' | tr ',-' ' _'); do
		take "$dependency"
	done
	echo "$1" >>"$out/modules/order"
}

# leave_out RELEASE REASON
leave_out() {
	echo "fetch-kernels: without $1: $2" >&2
	grep -v "^$1	" "$root/list" >"$work/list"
	mv "$work/list" "$root/list"
	rm -r "$work/packages"
}

fetch() {
	wanted | while IFS="$(printf '\t')" read -r release distribution; do
		[ ! -d "$root/$release" ] || continue
		echo "fetch-kernels: $release, of $distribution" >&2
		# Since 6.19, the package of the image has none: it depends on those that have parts of it. Of an
		# older version, the archive may keep some of them; apt shows the others in `<>`.
		apt apt-cache depends "linux-image-$release" |
			sed -n "s/^ *Depends: \(<\?linux-\(binary\|modules\)-.*\)/\1/p" >"$work/parts"
		lacks=$(grep '^<' "$work/parts" | tr '\n' ' ')
		mkdir "$work/packages"
		# shellcheck disable=SC2046 # a list of words
		(cd "$work/packages" &&
			apt apt-get -qq download "linux-image-$release" $(grep -v '^<' "$work/parts")) || {
			leave_out "$release" "$(tail -n 1 "$work/log")"
			continue
		}
		for package in "$work"/packages/*.deb; do
			dpkg-deb -x "$package" "$work/packages"
		done
		out=$work/out
		rm -rf "$out"
		mkdir -p "$out/modules"
		find "$work/packages" -name 'vmlinuz*' -type f -exec cp {} "$out/vmlinuz" \;
		[ -e "$out/vmlinuz" ] || {
			leave_out "$release" "the archive lacks $lacks"
			continue
		}
		[ -z "$lacks" ] || echo "$lacks" >"$out/modules/lack"
		: >"$out/modules/order"
		for module in $modules; do
			take "$module"
		done
		rm -r "$work/packages"
		mv "$out" "$root/$release"
	done
}

fetch
# The newest may have been found to lack its modules: then, the one before.
[ -z "$short" ] || fetch
print
