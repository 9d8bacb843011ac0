#!/bin/bash
# Boots the kernels of Debian's distributions in QEMU, without KVM, and checks in each what vcc does:
# guest/kernels/init has the checks. The long form writes the table of docs/kernels.md.
#
#   check-kernels.sh [--quick] [--only PATTERN] [VCC]    default: target/release/vcc
#
# --quick: the oldest kernel that vcc supports and the newest, with three checks in each.
# --only PATTERN: the kernels whose release contains it; the table stays as it is.
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
table=docs/kernels.md
# vcc attaches by TCX.
supported=6.6
# A kernel that hangs; with all checks, one takes two minutes.
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
for tool in ip tc ethtool; do
	command -v $tool >/dev/null || skip "$tool is not installed (package iproute2 or ethtool)"
done
[ -x "$vcc" ] || fail "there is no $vcc"
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

# What all machines have: busybox, vcc and tools with the libraries that they load.
root=$work/root
mkdir -p "$root"/{bin,sbin,lib,lib64,usr/bin,usr/sbin,proc,sys,dev,tmp,run,etc}
cp "$busybox" "$root/bin/busybox"
for applet in $("$busybox" --list); do
	case $applet in
	busybox | ip | tc) ;;
	*) ln -s busybox "$root/bin/$applet" ;;
	esac
done
cp guest/kernels/init "$root/init"
cp "$vcc" "$root/bin/vcc"
# Debug information is most of a build's size.
! command -v strip >/dev/null || strip "$root/bin/vcc"
for tool in ip tc ethtool; do
	cp "$(command -v $tool)" "$root/bin/$tool"
done
ldd "$root"/bin/{vcc,ip,tc,ethtool} | grep -o '/[^ ]*' | grep '\.so' | sort -u | while read -r library; do
	mkdir -p "$root${library%/*}"
	cp -L "$library" "$root$library"
done
[ -z "$quick" ] || : >"$root/short"
pack "$root" "$work/base"

# boot DIRECTORY LOG
boot() {
	mkdir -p "$work/own"
	cp -r "$1/modules" "$work/own/"
	pack "$work/own" "$work/own.cpio"
	rm -r "$work/own"
	cat "$work/base" "$work/own.cpio" >"$work/initrd"
	timeout "$patience" $qemu -machine q35 -accel tcg -cpu max,-erms,-fsrm -smp 2 -m 1G -nodefaults \
		-display none -no-reboot -serial stdio -kernel "$1/vmlinuz" -initrd "$work/initrd" \
		-append 'console=ttyS0 no_timer_check quiet loglevel=1 panic=-1' </dev/null 2>&1 |
		sed -u 's/\r//g; s/^.*\(kernel [0-9][^ ]*, vcc \)/\1/' | tee "$2"
}

# older RELEASE VERSION
older() {
	[ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]
}

passed=0 failed=0 skipped=0 kernels=0
while IFS=$'\t' read -r release distribution directory; do
	kernels=$((kernels + 1))
	echo "== $release, $distribution"
	log=$work/$release
	boot "$directory" "$log"
	if ! grep -qx end "$log"; then
		echo "FAILED boot: the checks did not end within $patience s" | tee -a "$log"
	fi
	if older "$release" "$supported"; then
		# What vcc has to do here is to refuse, and to say why.
		if grep -q "^FAILED attach.*$supported" "$log" && grep -q '^FAILED doctor' "$log"; then
			sed -i 's/^FAILED \(attach\|doctor\)/refused \1/' "$log"
			echo "ok refusal: $(sed -n 's/^refused attach[^:]*: //p' "$log")"
			passed=$((passed + 1))
		fi
	fi
	passed=$((passed + $(grep -c '^ok ' "$log")))
	failed=$((failed + $(grep -c '^FAILED ' "$log")))
	skipped=$((skipped + $(grep -c '^skipped ' "$log")))
done <"$work/kernels"

echo "$kernels kernels: $passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
