#!/bin/bash
# Fuzzes with libFuzzer, guided by coverage, with the sanitizer of undefined behaviour in the engine's C.
#
#   run.sh [--seconds N] [--steps N] [--work DIR] [--keep] [TARGET...]    all targets, or those named
#
# Each target runs for N seconds (60), or until it has made N steps: calls of the engine, frames, texts
# and the like. It runs as often at once as there are CPUs. Inputs that reached new code stay in DIR
# (target/fuzz), where the next run begins, and finds too. Prints what was done, and how many lines of
# the engine were reached. With --keep, inputs that reach all that was reached replace those in
# fuzz/corpus. Exit code 1: there is a find.
set -u
cd "$(dirname "$0")/.." || exit 1

seconds=60 steps=0 keep='' work=${CARGO_TARGET_DIR:-target}/fuzz
while [ $# -gt 0 ]; do
	case $1 in
	--seconds) seconds=$2 && shift ;;
	--steps) steps=$2 && shift ;;
	--work) work=$2 && shift ;;
	--keep) keep=1 ;;
	*) break ;;
	esac
	shift
done
[ $# -gt 0 ] || set -- fuzz/corpus/*
host=$(rustc -vV | sed -n 's/^host: //p')
jobs=$(nproc)

# build DIR: with --target, so that build scripts are built without the flags.
build() {
	# shellcheck disable=SC2086 # CARGO may be several words
	${CARGO:-cargo} build --quiet --package vcc-fuzz --features libfuzzer --profile fuzz \
		--target "$host" --target-dir "$1"
}

# libFuzzer counts edges, and tries the operands of comparisons.
coverage=(-Cpasses=sancov-module -Ccodegen-units=1)
for kind in level=4 inline-8bit-counters pc-table trace-compares; do
	coverage+=("-Cllvm-args=-sanitizer-coverage-$kind")
done
clang=${CLANG:-clang-16}
CC=$clang CXX=${clang/clang/clang++} RUSTFLAGS=${coverage[*]} \
	CFLAGS='-fsanitize=fuzzer-no-link,undefined -fsanitize-trap=undefined' \
	build "$work/build" || exit 1
fuzzer=$work/build/$host/fuzz/vcc-fuzz
# gcov counts lines.
CC=gcc CFLAGS='--coverage -O0' RUSTFLAGS='-Clink-arg=--coverage' build "$work/count" || exit 1
counter=$work/count/$host/fuzz/vcc-fuzz
find "$work/count" -name '*.gcda' -delete

# stat NAME: the sum over all jobs of a target.
stat() {
	sed -n "s/^stat::$1: *//p" "$log".* | awk '{ sum += $1 } END { printf "%d", sum }'
}

failed=0 steps_done=0 executions=0
for target in "${@##*/}"; do
	export VCC_FUZZ_TARGET=$target VCC_FUZZ_STEPS=$((steps / jobs))
	corpus=$work/corpus/$target finds=$work/finds/$target log=$work/$target.log
	mkdir -p "$corpus" "$finds" "fuzz/corpus/$target"
	rm -f "$log".*
	limit=-max_total_time=$seconds
	[ "$steps" = 0 ] || limit=-max_total_time=0
	pids=()
	for job in $(seq "$jobs"); do
		"$fuzzer" "$corpus" "fuzz/corpus/$target" "$limit" -artifact_prefix="$finds/" \
			-max_len=4096 -timeout=30 -print_final_stats=1 >"$log.$job" 2>&1 &
		pids+=($!)
	done
	found=''
	for pid in "${pids[@]}"; do
		wait "$pid" || found=1
	done
	edges=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log".* | sort -n | tail -n 1)
	printf '%-8s %12s executions %12s steps %6s edges %6s inputs\n' "$target" \
		"$(stat number_of_executed_units)" "$(stat steps)" "${edges:-0}" \
		"$(find "$corpus" -type f | wc -l)"
	steps_done=$((steps_done + $(stat steps)))
	executions=$((executions + $(stat number_of_executed_units)))
	if [ -n "$found" ]; then
		echo "FOUND by $target: what broke is in $log.*, the input in $finds" >&2
		failed=1
	fi
	"$counter" -runs=0 "$corpus" "fuzz/corpus/$target" >"$log.count" 2>&1
	if [ -n "$keep" ]; then
		rm -rf "$work/kept" && mkdir "$work/kept"
		# Of edges alone, or there would be thousands.
		"$fuzzer" -set_cover_merge=1 -use_counters=0 "$work/kept" "$corpus" \
			"fuzz/corpus/$target" >"$log.keep" 2>&1 || exit 1
		rm -rf "fuzz/corpus/$target" && cp -r "$work/kept" "fuzz/corpus/$target"
	fi
done

# Of each header of the engine: lines reached, and lines that there are.
find "$work/count" -name '*native.gcda' -exec gcov -n {} \; 2>/dev/null |
	awk -F "[':% ]+" '/^File / { name = /\/engine\// ? $2 : "" }
		/^Lines executed/ && name { sub(/.*\/engine\//, "", name); printf "%s %.0f %d\n", name, $3 * $5 / 100, $5; name = "" }' |
	sort >"$work/lines"
awk -v executions="$executions" -v steps="$steps_done" '
	{ reached += $2; lines += $3 }
	END { printf "%d executions, %d steps, %d of %d lines of engine/ reached\n", executions, steps, reached, lines }' "$work/lines"
exit $failed
