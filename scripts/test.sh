#!/bin/bash
# Runs all checks and tests. The last line is the summary:
#   N passed, N failed, N skipped
# shellcheck disable=SC2086 # CARGO may be several words
set -u
cd "$(dirname "$0")/.." || exit 1

CARGO=${CARGO:-cargo}
passed=0 failed=0 skipped=0
work=$(mktemp -d)
log=$work/log VCC_SKIPPED_TESTS=$work/skipped
: >"$VCC_SKIPPED_TESTS"
export VCC_SKIPPED_TESTS
beside=()
leave() {
	local group
	for group in "${beside[@]}"; do
		kill -- "-$group" 2>/dev/null
	done
	rm -rf "$work"
}
trap leave EXIT
trap 'exit 1' HUP INT TERM

# The time of each part.
TIMEFORMAT='-- %0lR, CPU %0U + %0S s'

check() {
	local name=$1 status=0
	shift
	printf '== %s\n' "$name"
	time "$@" || status=$?
	case $status in
	0) passed=$((passed + 1)) ;;
	77)
		printf 'SKIPPED: %s\n' "$name"
		skipped=$((skipped + 1))
		;;
	*)
		printf 'FAILED: %s\n' "$name"
		failed=$((failed + 1))
		;;
	esac
}

# conclude NAME STATUS FILE: what a test script has printed. Exit code 77 means skipped, for the reason in its
# last line before its times.
conclude() {
	printf '== %s\n' "$1"
	cat "$3"
	case $2 in
	0) passed=$((passed + 1)) ;;
	77)
		printf 'SKIPPED: %s\n' "$(grep -v '^-- ' "$3" | tail -n 1)"
		skipped=$((skipped + 1))
		;;
	*)
		printf 'FAILED: %s\n' "$1"
		failed=$((failed + 1))
		;;
	esac
}

check_or_skip() {
	local name=$1 status=0
	shift
	{ time "$@"; } >"$log" 2>&1 || status=$?
	conclude "$name" $status "$log"
}

# begin_beside NICENESS: from here on, commands run in parallel to what this script runs, one after the other
# and with what the others leave of the CPUs. Reads a name and a command from each line.
begin_beside() {
	local niceness=$1 queue=$work/beside.${#beside[@]}
	mkdir "$queue"
	cat >"$queue/list"
	# A group of their own, which can be ended as one.
	set -m
	(
		nth=0
		renice -n "$niceness" -p $BASHPID >/dev/null
		while IFS=: read -r name command; do
			nth=$((nth + 1)) status=0
			# shellcheck disable=SC2086 # words without spaces
			{ time $command; } >"$queue/$nth.out" 2>&1 </dev/null || status=$?
			echo "$status" >"$queue/$nth.status"
		done <"$queue/list"
	) &
	set +m
	beside+=($!)
}

# Waits for them all, and prints their output.
conclude_beside() {
	local queue nth name
	wait "${beside[@]}"
	for queue in "$work"/beside.*; do
		nth=0
		while IFS=: read -r name _; do
			nth=$((nth + 1))
			conclude "$name" "$(cat "$queue/$nth.status")" "$queue/$nth.out"
		done <"$queue/list"
	done
	beside=()
}

skip() {
	printf '== %s\nSKIPPED: %s\n' "$1" "$2"
	skipped=$((skipped + 1))
}

# compile_natively COMPILER OPTION...: compiles the engine for user space; the datapath's build compiles it for
# BPF.
compile_natively() {
	"$@" -std=c11 -ffreestanding -Wall -Wextra -Werror -I engine -I datapath \
		-c crates/vcc-engine/native.c -o /dev/null
}

# Adds up the results of cargo's test binaries, which count a test that skipped itself as passed.
count_tests() {
	local ran broken ignored self_skipped
	read -r ran broken ignored < <(sed -n 's/^test result: [^.]*\. //p' "$log" |
		awk '{ ran += $1; broken += $3; ignored += $5 } END { print ran + 0, broken + 0, ignored + 0 }')
	self_skipped=$(wc -l <"$VCC_SKIPPED_TESTS")
	passed=$((passed + ran - self_skipped))
	failed=$((failed + broken))
	skipped=$((skipped + ignored + self_skipped))
	# A compile error, or a test that crashed its binary.
	if [ "$1" -ne 0 ] && [ "$broken" -eq 0 ]; then
		failed=$((failed + 1))
	fi
}

# The solver waits for nothing, and nothing for it.
begin_beside 10 <<-END
	proofs:proofs/run.sh --quick
END

if $CARGO fmt --version >/dev/null 2>&1; then
	check 'rustfmt' $CARGO fmt --all --check
else
	skip 'rustfmt' 'rustfmt is not installed'
fi
check 'clang-format' scripts/format-c.sh --dry-run -Werror
# Some warnings of cc come from its optimizer, and none of clang's.
check 'native engine: cc' compile_natively cc -O2
check 'native engine: clang' \
	compile_natively "${CLANG:-$(command -v clang-16 clang-19 clang | head -n 1)}" -fsyntax-only
if command -v shellcheck >/dev/null; then
	# shellcheck disable=SC2046 # their names are words
	check 'shellcheck' shellcheck $(grep -rlI '^#!/bin/\(ba\)\?sh$' scripts packaging guest proofs faults fuzz .ci)
else
	skip 'shellcheck' 'shellcheck is not installed'
fi

if [ "$(id -u)" -eq 0 ]; then
	check 'guest kernel' guest/kernel/build.sh
else
	skip 'guest kernel' 'building it may install packages, which needs root'
fi
if [ "$(dpkg --print-architecture 2>/dev/null)" = amd64 ]; then
	check 'guest for QEMU' guest/live/build.sh
else
	skip 'guest for QEMU' 'it is made of packages of Debian on amd64'
fi
if [ "$(id -u)" -eq 0 ] && [ "$(dpkg --print-architecture 2>/dev/null)" = amd64 ]; then
	check "PVTCP's patches" scripts/check-pvtcp.sh --quick
else
	skip "PVTCP's patches" 'compiling them may install packages, which needs root, and Debian on amd64'
fi
check_or_skip "Kubernetes' tools" scripts/kubernetes-tools.sh

# compile LOG: compiles what the tests run, and copies the compiler's words. No crate has documentation
# tests: the lines of the documentation are tests of the command.
compile() {
	${LINTER:+env RUSTC_WORKSPACE_WRAPPER=$LINTER} \
		$CARGO test --workspace --lib --bins --tests --examples --no-run --quiet 2>&1 | tee "$1"
	return "${PIPESTATUS[0]}"
}

has_no_warnings() {
	! grep -q '^\(warning\|error\)' "$1"
}

# clippy is a compiler with lints. It compiles the project's crates, so that nothing is compiled for it alone.
LINTER=
if $CARGO clippy --version >/dev/null 2>&1; then
	LINTER=clippy-driver
fi
export LINTER
check 'tests compile' compile "$work/compiled"
if [ -n "$LINTER" ]; then
	check 'clippy' has_no_warnings "$work/compiled"
else
	skip 'clippy' 'clippy is not installed'
fi

# The binary that the tests have built; vcc-lab is next to it.
vcc=${CARGO_TARGET_DIR:-target}/debug/vcc
# One after the other, faults take one CPU. With less of it than this, they end minutes after all others.
begin_beside 5 <<-END
	faults:faults/run.sh --quick
	sources of another layout:scripts/check-upgrade.sh --sources
END
begin_beside 10 <<-END
	make install and uninstall:scripts/test/install.sh $vcc
	Debian package:scripts/test/deb.sh $vcc
	RPM package and archive:scripts/test/rpm.sh $vcc
	release:scripts/test/release.sh $vcc
	kernels, short:scripts/check-kernels.sh --quick $vcc
	Kubernetes manifest:scripts/test/kubernetes.sh $vcc
END
echo '== tests'
time scripts/test/binaries.sh 2>&1 | tee "$log"
count_tests "${PIPESTATUS[0]}"
conclude_beside

if [ -s "$VCC_SKIPPED_TESTS" ]; then
	echo '== skipped'
	sort -u "$VCC_SKIPPED_TESTS"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
