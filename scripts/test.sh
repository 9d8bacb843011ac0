#!/bin/bash
# Runs every check and every test. The last line, alone, sums up:
#   N passed, N failed, N skipped
# shellcheck disable=SC2086 # CARGO may be several words
set -u
cd "$(dirname "$0")/.." || exit 1

CARGO=${CARGO:-cargo}
passed=0 failed=0 skipped=0
log=$(mktemp) VCC_SKIPPED_TESTS=$(mktemp)
export VCC_SKIPPED_TESTS
trap 'rm -f "$log" "$VCC_SKIPPED_TESTS"' EXIT

check() {
	local name=$1
	shift
	printf '== %s\n' "$name"
	if "$@"; then
		passed=$((passed + 1))
	else
		printf 'FAILED: %s\n' "$name"
		failed=$((failed + 1))
	fi
}

# A script of its own, which ends with 77 where it cannot run, and says why in its last line.
check_or_skip() {
	local name=$1 status=0
	shift
	printf '== %s\n' "$name"
	"$@" 2>&1 | tee "$log"
	status=${PIPESTATUS[0]}
	case $status in
	0) passed=$((passed + 1)) ;;
	77)
		printf 'SKIPPED: %s\n' "$(tail -n 1 "$log")"
		skipped=$((skipped + 1))
		;;
	*)
		printf 'FAILED: %s\n' "$name"
		failed=$((failed + 1))
		;;
	esac
}

skip() {
	printf '== %s\nSKIPPED: %s\n' "$1" "$2"
	skipped=$((skipped + 1))
}

# The datapath's compiler sees the engine for BPF; this is the engine for everybody else.
compile_natively() {
	"$1" -std=c11 -O2 -ffreestanding -Wall -Wextra -Werror -I engine -I datapath \
		-c crates/vcc-engine/native.c -o /dev/null
}

# Adds up what cargo's test binaries say; a test that skipped itself looks passed to them.
count_tests() {
	local ran broken ignored self_skipped
	read -r ran broken ignored < <(sed -n 's/^test result: [^.]*\. //p' "$log" |
		awk '{ ran += $1; broken += $3; ignored += $5 } END { print ran + 0, broken + 0, ignored + 0 }')
	self_skipped=$(wc -l <"$VCC_SKIPPED_TESTS")
	passed=$((passed + ran - self_skipped))
	failed=$((failed + broken))
	skipped=$((skipped + ignored + self_skipped))
	# It did not compile, or a test took its whole binary with it.
	if [ "$1" -ne 0 ] && [ "$broken" -eq 0 ]; then
		failed=$((failed + 1))
	fi
}

if $CARGO fmt --version >/dev/null 2>&1; then
	check 'Rust is formatted' $CARGO fmt --all --check
else
	skip 'Rust is formatted' 'no rustfmt'
fi
check 'C is formatted' scripts/format-c.sh --dry-run -Werror
check 'the engine compiles natively: cc' compile_natively cc
check 'the engine compiles natively: clang' compile_natively "${CLANG:-clang-16}"
if command -v shellcheck >/dev/null; then
	# shellcheck disable=SC2046 # their names are words
	check 'scripts are sound' shellcheck $(grep -rlI '^#!/bin/\(ba\)\?sh$' scripts packaging guest .ci)
else
	skip 'scripts are sound' 'no shellcheck'
fi
if $CARGO clippy --version >/dev/null 2>&1; then
	check 'clippy is content' $CARGO clippy --quiet --workspace --all-targets -- -D warnings
else
	skip 'clippy is content' 'no clippy'
fi

if [ "$(id -u)" -eq 0 ]; then
	check 'the guests of virtual time have a kernel' guest/kernel/build.sh
else
	skip 'the guests of virtual time have a kernel' 'building it may install packages, which needs root'
fi

echo '== tests'
$CARGO test --workspace --no-fail-fast 2>&1 | tee "$log"
count_tests "${PIPESTATUS[0]}"

# With the binary that the tests were run with.
vcc=${CARGO_TARGET_DIR:-target}/debug/vcc
check_or_skip 'it installs and uninstalls' scripts/test/install.sh "$vcc"
check_or_skip 'the Debian package installs and purges' scripts/test/deb.sh "$vcc"
check_or_skip 'Kubernetes knows what it is asked for' scripts/test/kubernetes.sh "$vcc"

if [ -s "$VCC_SKIPPED_TESTS" ]; then
	echo '== skipped'
	sort -u "$VCC_SKIPPED_TESTS"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
