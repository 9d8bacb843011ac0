#!/bin/bash
# Builds and runs the tests of all crates, and prints what each test binary prints when it has ended. Cargo
# runs one binary after the other; here some run in parallel, because many tests wait for most of
# their time: for timers, guests, servers or a browser.
#
#   binaries.sh    environment: CARGO; LINTER: the compiler that compiles the project's crates instead of rustc;
#                  JOBS: how many binaries run at a time (as many as CPUs)
#
# shellcheck disable=SC2086 # CARGO may be several words
set -u
cd "$(dirname "$0")/../.." || exit 1

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
export work

# Cargo passes to its runner what it would run, and where. No crate has documentation tests: the lines of the
# documentation are tests of the command.
# shellcheck disable=SC2016 # for the shell of the runner
note='printf "%s\0" "$CARGO" "$PWD" "$0" >>"$work/binaries"'
${LINTER:+env RUSTC_WORKSPACE_WRAPPER=$LINTER} \
	${CARGO:-cargo} test --workspace --lib --bins --tests --quiet \
	--config "target.'cfg(unix)'.runner = ['sh', '-c', '''$note''']" >"$work/said" 2>&1 ||
	{
		cat "$work/said"
		exit 1
	}

# Several times what the longest takes.
limit_minutes=40
export limit_minutes

# run VARIABLE=VALUE|- CARGO DIRECTORY BINARY: the variable is for this binary only. A binary that hangs is
# ended: without its output, nobody would know which test it was.
run() {
	local name=${4##*/} variable=${1#-} began=$SECONDS status=0 out
	out=$work/$name.$1
	(
		cd "$3" && export CARGO=$2 CARGO_MANIFEST_DIR=$3
		[ -z "$variable" ] || export "${variable?}"
		exec timeout --foreground --kill-after=10 "${limit_minutes}m" "$4"
	) >"$out" 2>&1 || status=$?
	# What it names as slow and has no result hangs. timeout ends with 137 if the first signal was not enough.
	case $status in
	124 | 137) echo "ended, because it took more than $limit_minutes minutes" >>"$out" ;;
	esac
	# A test that ended its process.
	[ $status = 0 ] || grep -q '^test result: FAILED' "$out" ||
		echo "test result: FAILED. 0 passed; 1 failed; 0 ignored; the binary ended with $status" >>"$out"
	{
		flock 9
		printf '\n-- %s%s, %d s\n' "${name%-*}" "${variable:+ with $variable}" $((SECONDS - began))
		cat "$out"
	} 9>"$work/lock"
	return $status
}
export -f run

# Those that take longest come first. The kernel's programs as they are with PREEMPT_RT do the same.
slow='command promise lab vcc_port page vcc_lab foreign kubernetes transfer'
while IFS= read -rd '' cargo && IFS= read -rd '' directory && IFS= read -rd '' binary; do
	name=${binary##*/}
	name=${name%-*}
	rank=$(printf '%s\n' $slow | grep -nx "$name" | cut -d : -f 1)
	printf '%s\t%s\t%s\t%s\t%s\0' "${rank:-99}" - "$cargo" "$directory" "$binary"
	[ "$name" != golden ] ||
		printf '%s\t%s\t%s\t%s\t%s\0' "${rank:-99}" VCC_AS_PREEMPT_RT=1 "$cargo" "$directory" "$binary"
done <"$work/binaries" | sort -zn | tr '\t' '\0' >"$work/jobs"
# shellcheck disable=SC2016 # the arguments of the inner shell
xargs -0 -n 5 -P "${JOBS:-$(nproc)}" bash -c 'shift; run "$@" </dev/null' run <"$work/jobs"
