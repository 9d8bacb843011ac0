#!/bin/bash
# Runs the tests of the engine, the driver domain and the virtual machine's card, and all inputs that
# the fuzzer has kept, with the C code under AddressSanitizer and UndefinedBehaviorSanitizer.
#
# Memory that Rust allocates comes from the sanitizer's malloc, so that C which goes beyond an allocation
# of Rust's is caught like C which goes beyond its own variables. Rust itself is not instrumented (it
# takes an unstable compiler), but for what it copies, fills and compares by functions of libc; so its
# stacks have no red zones.
# The last line is the figure.
set -u
cd "$(dirname "$0")/.." || exit 1

host=$(rustc -vV | sed -n 's/^host: //p')
work=${CARGO_TARGET_DIR:-target}/sanitize
log=$work/log
clang=${CLANG:-$(command -v clang-16 clang-19 clang | head -n 1)}
sanitizers=address,undefined
packages=(vcc-engine vcc-domain vcc-vhost vcc-fuzz)
mkdir -p "$work" || exit 1

fail() {
	echo "sanitize: $*" >&2
	exit 1
}

echo 'int main(void) { return 0; }' |
	"$clang" -fsanitize=$sanitizers -x c - -o "$work/probe" 2>"$log" ||
	fail "$clang has no sanitizers (apt-get install libclang-rt-16-dev): $(tail -n 1 "$log")"

# Only what is for the target: build scripts run as they are. Any finding ends the test. An array at
# the end of a struct has the length that it is declared with.
variable=${host//-/_}
export "CC_$variable=$clang"
flags="-g -fno-omit-frame-pointer -fstrict-flex-arrays=3 -fsanitize=$sanitizers -fno-sanitize-recover=all"
export "CFLAGS_$variable=$flags"
variable=${variable^^}
export "CARGO_TARGET_${variable}_LINKER=$clang"
export "CARGO_TARGET_${variable}_RUSTFLAGS=-Clink-arg=-fsanitize=$sanitizers"
export ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1

# shellcheck disable=SC2086 # CARGO may be several words
${CARGO:-cargo} test "${packages[@]/#/--package=}" --lib --bins --tests --no-fail-fast \
	--target "$host" --target-dir "$work" 2>&1 | tee "$log"
status=${PIPESTATUS[0]}
[ "$status" = 0 ] || fail "a test has failed, or a sanitizer has found something: $log"

# A compiler that has ignored the flags finds nothing, either.
archive=$(find "$work/$host" -name libvcc_engine.a -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d ' ' -f 2)
for called in __asan_report_load8 __ubsan_handle_type_mismatch; do
	nm "$archive" | grep -q " U $called" || fail "$archive does not call $called"
done

inputs=$(find fuzz/corpus -type f | wc -l)
sed -n 's/^test result: [^.]*\. //p' "$log" | awk -v inputs="$inputs" '
	{ passed += $1; failed += $3 }
	END { printf "%d tests passed, %d failed, %d inputs of the fuzzer among them\n", passed, failed, inputs }'
