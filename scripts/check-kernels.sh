#!/bin/bash
# Boots the kernels of Debian's distributions in QEMU, without KVM, and checks in each what vcc does:
# guest/kernels/init has the checks. The long form writes the tables of docs/kernels.md.
#
#   check-kernels.sh [--quick] [--only PATTERN] [VCC]    default: target/release/vcc; VCC-lab and VCC-guest
#                                                        are next to it
#
# --quick: the oldest kernel that vcc supports and the newest, with five checks in each.
# --only PATTERN: the kernels whose release contains it; the tables stay as they are.
# Logs go to results/kernels/.
#
# Exit code 77: skipped, for the reason in the last line.
set -u
cd "$(dirname "$0")/.." || exit 1

quick='' only=''
while :; do
	case ${1-} in
	--quick) quick=1 ;;
	--only)
		only=$2
		shift
		;;
	*) break ;;
	esac
	shift
done
vcc=${1:-target/release/vcc}
page=docs/kernels.md
# vcc attaches by TCX.
supported=6.6
machines=2
# A kernel that hangs; with all checks, one takes three minutes.
patience=${VCC_KERNEL_SECONDS:-600}
qemu='qemu-system-x86_64'

fail() {
	echo "check-kernels: $*" >&2
	exit 1
}

skip() {
	echo "$*"
	exit 77
}

command -v $qemu >/dev/null || skip "$qemu is not installed (package qemu-system-x86)"
busybox=$(command -v busybox) || skip 'busybox is not installed (package busybox-static)'
! ldd "$busybox" >/dev/null 2>&1 || skip 'busybox is not linked statically (package busybox-static)'
for tool in ip ss tc ethtool; do
	command -v $tool >/dev/null || skip "$tool is not installed (package iproute2 or ethtool)"
done
for binary in "$vcc" "$vcc-lab" "$vcc-guest"; do
	[ -x "$binary" ] || fail "there is no $binary"
done
[ "$(uname -m)" = x86_64 ] || skip 'the kernels are for x86'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
scripts/fetch-kernels.sh ${quick:+--short} >"$work/kernels" 2>"$work/log"
case $? in
0) ;;
77) skip "$(tail -n 1 "$work/log")" ;;
*) fail "$(tail -n 3 "$work/log")" ;;
esac
[ -z "$only" ] || {
	grep -e "^[^	]*$only" "$work/kernels" >"$work/some" || fail "no kernel is called $only"
	mv "$work/some" "$work/kernels"
}

# pack DIRECTORY FILE
pack() {
	(cd "$1" && find . | "$busybox" cpio -o -H newc -R 0:0 2>/dev/null) >"$2" ||
		fail "cannot pack $2"
}

# What all machines have: busybox, vcc, vcc-lab and tools with the libraries that they load.
root=$work/root
mkdir -p "$root"/{bin,sbin,lib,lib64,usr/bin,usr/sbin,proc,sys,dev,tmp,run,etc}
cp "$busybox" "$root/bin/busybox"
for applet in $("$busybox" --list); do
	case $applet in
	busybox | ip | ss | tc) ;;
	*) ln -s busybox "$root/bin/$applet" ;;
	esac
done
cp guest/kernels/init "$root/init"
cp "$vcc" "$root/bin/vcc"
cp "$vcc-lab" "$root/bin/vcc-lab"
cp "$vcc-guest" "$root/bin/vcc-guest"
if [ -z "$quick" ]; then
	# What stood before this build on the hosts that it comes to.
	if last=$(scripts/check-upgrade.sh --last 2>"$work/log"); then
		cp "$last" "$root/bin/vcc-last"
		basename "${last%/target/debug/vcc}" >"$root/last"
	else
		echo "the last release cannot be built: $(tail -n 1 "$work/log")" >"$root/no-last"
	fi
fi
# Debug information is most of a build's size.
! command -v strip >/dev/null || strip "$root"/bin/vcc*
for tool in ip ss tc ethtool; do
	cp "$(command -v $tool)" "$root/bin/$tool"
done
ldd "$root"/bin/{vcc*,ip,ss,tc,ethtool} | grep -o '/[^ ]*' | grep '\.so' | sort -u | while read -r library; do
	mkdir -p "$root${library%/*}"
	cp -L "$library" "$root$library"
done
[ -z "$quick" ] || : >"$root/short"
pack "$root" "$work/base"

# boot DIRECTORY: prints its machine's output. With one CPU, since kernels change code that other CPUs
# run in a way that QEMU, without KVM, at times does not follow.
boot() {
	local own
	own=$(mktemp -d "$work/own.XXXXXX")
	mkdir "$own/root"
	cp -r "$1/modules" "$own/root/"
	pack "$own/root" "$own/modules"
	cat "$work/base" "$own/modules" >"$own/initrd"
	timeout "$patience" $qemu -machine q35 -accel tcg -cpu max,-erms,-fsrm -m 1G -nodefaults \
		-display none -no-reboot -serial stdio -kernel "$1/vmlinuz" -initrd "$own/initrd" \
		-append 'console=ttyS0 no_timer_check quiet loglevel=1 panic=-1' </dev/null 2>&1 | sed -u 's/\r//g'
	rm -r "$own"
}

# older RELEASE VERSION
older() {
	[ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]
}

# run RELEASE DISTRIBUTION DIRECTORY: its checks, into a log.
run() {
	local log=$logs/$1
	boot "$3" >"$log"
	if ! grep -qx end "$log"; then
		echo "FAILED boot: the checks did not end within $patience s" >>"$log"
	fi
	# Where vcc cannot work, it has to refuse, and to say why.
	if older "$1" "$supported" && grep '^FAILED attach' "$log" | grep -q 'has no TCX'; then
		sed -i 's/^FAILED \(attach\|doctor\)/refused \1/' "$log"
		echo "ok refusal: $(sed -n 's/^refused attach[^:]*: //p' "$log")" >>"$log"
	fi
	# At once, so that the lines of two kernels do not mix.
	{
		echo "== $1, $2"
		cat "$log"
	} >"$log.all"
	cat "$log.all"
	rm "$log.all"
}

# row RELEASE DISTRIBUTION: of the table; a column has the checks whose names begin with its own.
columns='doctor,flood,attach,IPv4,IPv6,FQ-CoDel,AccECN,trace,record,guests,pacing,underlays,beside DCTCP,vcc run,drain,detach,upgrade,log'
row() {
	awk -v kernel="$1" -v distribution="$2" -v columns="$columns" '
		/^(ok|FAILED|skipped|refused) / {
			result = $1
			text = substr($0, length($1) + 2)
			name = text
			sub(/[:,].*/, "", name)
			said = text
			sub(/^[^:]*: /, "", said)
			# The worst of a column.
			if (!(name in cell) || cell[name] == "ok")
				cell[name] = result
			if (result == "ok" && name == "beside DCTCP")
				cell[name] = substr(said, match(said, /[0-9.]*$/))
			# Attaching is refused for the reason that doctor reports, too.
			if (result != "ok" && !(name == "doctor" && text ~ /datapath|kernel/)) {
				gsub(/`/, "\"", said)
				gsub(/[|]/, "\\\\|", said)
				why = why (why == "" ? "" : "; ") substr(text, 1, index(text, ":")) " `" said "`"
			}
		}
		END {
			count = split(columns, names, ",")
			printf "| %s | %s |", kernel, distribution
			for (i = 1; i <= count; i++)
				printf " %s |", names[i] in cell ? cell[names[i]] : "-"
			print " " why " |"
		}' "$logs/$1"
}

# verified RELEASE: a row with the instructions of each program, after one with their names.
verified() {
	sed -n 's/^ok verifier: //p' "$logs/$1" | awk -F ', ' -v kernel="$1" '{
		head = "| kernel |"
		line = "|---|"
		row = "| " kernel " |"
		for (i = 1; i <= NF; i++) {
			split($i, program, " ")
			head = head " " program[1] " |"
			line = line "---|"
			row = row " " program[2] " |"
		}
		print head "\n" line
		print row
	}'
}

# What is between the markers of the page.
table() {
	local release distribution directory
	echo "On $(date -u +%F), with vcc $("$vcc" --version | cut -d ' ' -f 2-)."
	echo
	echo "| kernel | distribution | ${columns//,/ | } | why not |"
	echo "|---|---|$(echo "$columns" | tr ',' '\n' | sed 's/.*/---|/' | tr -d '\n')---|"
	while IFS=$'\t' read -r release distribution directory; do
		row "$release" "$distribution"
	done <"$work/kernels"
	echo
	# shellcheck disable=SC2016 # code of Markdown's
	echo 'The instructions that the verifier processed for each program, as `vcc-lab bench verifier` prints them:'
	echo
	# The programs are the same everywhere, but that one more is loaded where there are no timers.
	while IFS=$'\t' read -r release distribution directory; do
		verified "$release"
	done <"$work/kernels" | awk '/^[|] kernel / { head = $0; next } /^[|]---/ { line = $0; next }
		head != last { if (last) print ""; print head; print line; last = head } { print }'
}

# Two at a time: a machine has one CPU.
logs=${RESULTS:-results}/kernels
mkdir -p "$logs" || fail "cannot create $logs"
while IFS=$'\t' read -r release distribution directory; do
	while [ "$(jobs -rp | wc -l)" -ge "$machines" ]; do
		wait -n
	done
	run "$release" "$distribution" "$directory" &
done <"$work/kernels"
wait

count() {
	cut -f 1 "$work/kernels" | (cd "$logs" && xargs cat) | grep -c "^$1 "
}
if [ -z "$quick$only" ]; then
	table >"$work/table"
	sed -i -e '/^<!-- kernels: begin -->$/,/^<!-- kernels: end -->$/{//!d}' \
		-e "/^<!-- kernels: begin -->\$/r $work/table" "$page"
fi
echo "$(wc -l <"$work/kernels") kernels: $(count ok) passed, $(count FAILED) failed, $(count skipped) skipped"
[ "$(count FAILED)" = 0 ]
