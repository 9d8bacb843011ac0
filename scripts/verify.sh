#!/bin/bash
# Runs what takes longer than `make test` may: the proofs and theorems, the faults that tests must catch,
# sanitizers, fuzzing, all experiments at full length, stacks that are not Linux, peers that are not
# honest, ten minutes of short connections, a soak, virtual machines that migrate, a release made twice,
# upgrades and downgrades, a thousand agents of a cluster, PVTCP's patch in Debian's kernel,
# Debian's kernels in QEMU, and the benchmarks.
#
#   verify.sh [PART...]    all parts, or the ones that are named: tests proofs theorems faults
#                          sanitizers fuzz stacks peers expiry races chaos soak moves release
#                          upgrade fleet x86 accecn kernels experiments bench
#
# Figures and plots of experiments and benchmarks go to results/, with a report in results/index.html,
# and their tables into README.md and docs/; docs/evidence.md gets the last line of each other check.
# Fails if a check does, or if an experiment is not valid or not reproduced; an undecided one is only
# reported.
set -u
cd "$(dirname "$0")/.." || exit 1

CARGO=${CARGO:-cargo}
VCC=${VCC:-target/release/vcc}
RESULTS=${RESULTS:-results}
EVIDENCE=${EVIDENCE:-docs/evidence.md}
mkdir -p "$RESULTS"
failed=0
verdicts=

parts=${*:-tests proofs theorems faults sanitizers fuzz stacks peers expiry races chaos soak moves release upgrade fleet x86 accecn kernels experiments bench}
for part in $parts; do
	case $part in
	tests | proofs | theorems | faults | sanitizers | fuzz | stacks | peers | expiry | races) ;;
	chaos | soak | moves | release | upgrade | fleet | x86 | accecn | kernels | experiments | bench) ;;
	*)
		echo "verify: there is no part $part; the head of $0 has the list" >&2
		exit 2
		;;
	esac
done
is_wanted() {
	[[ " $parts " == *" $1 "* ]]
}

# note COMMAND FIGURE: writes the figure and the date into the row of docs/evidence.md that names the
# command.
note() {
	local text
	text=$(COMMAND=$1 FIGURE=$2 TODAY=$(date -u +%F) awk -F ' [|] ' -v OFS=' | ' '
		index($0, "`" ENVIRON["COMMAND"] "`") && NF == 4 {
			$3 = ENVIRON["FIGURE"]
			$4 = ENVIRON["TODAY"] " |"
			found = 1
		}
		{ print }
		END { exit !found }' "$EVIDENCE") || {
		echo "verify: no row of $EVIDENCE is about \`$1\`" >&2
		failed=1
		return
	}
	printf '%s\n' "$text" >"$EVIDENCE"
}

# check NAME COMMAND: what the command prints behind `figure: `, or its last line, is the figure of the
# row about NAME.
check() {
	local name=$1 log=$RESULTS/check.txt figure=FAILED
	shift
	printf '\n== %s\n' "$name"
	env "$@" 2>&1 | tee "$log"
	if [ "${PIPESTATUS[0]}" = 0 ]; then
		figure=$(sed -n 's/^\(test .* \.\.\. \)\?figure: //p' "$log" | paste -sd '|' | sed 's/|/; /g')
		[ -n "$figure" ] || figure=$(grep . "$log" | tail -n 1)
	else
		failed=1
	fi
	note "$name" "$figure"
}

# The outcome of the whole report, not of a case.
outcome() {
	sed -n 's/^  "outcome": "\(.*\)",$/\1/p' "$1"
}

run() {
	local name=$1 found status=0
	shift
	# Remove the results of an earlier run.
	rm -f "$RESULTS/$name.json"
	"$VCC" lab run "$@" --json "$RESULTS/$name.json" --plot "$RESULTS/$name.svg" || status=$?
	[ "$status" = 0 ] || failed=1
	found=$([ ! -e "$RESULTS/$name.json" ] || outcome "$RESULTS/$name.json")
	case $found in
	reproduced) ;;
	undecided) found="undecided: repeat with more runs: \`vcc lab run $* --runs N\`" ;;
	not-reproduced) found='NOT reproduced' ;;
	not-valid) found='NOT valid' ;;
	*) found='NOT completed' failed=1 ;;
	esac
	verdicts+="$name: $found"$'\n'
}

experiments() {
	local ids id
	ids=$("$VCC" lab list | awk 'NR > 1 { print $1 }')
	if [ -z "$ids" ]; then
		echo "verify: $VCC lists no experiments" >&2
		exit 1
	fi
	for id in $ids; do
		run "$id" "$id"
	done
	run vcc-fig11-modern vcc-fig11 --stack modern
}

bench() {
	local name
	for name in datapath connections host domain flood ports throughput virtual; do
		"$VCC" bench $name --json "$RESULTS/bench-$name.json" || failed=1
	done
}

export CARGO
# shellcheck disable=SC2206 # CARGO may be several words
cargo=($CARGO)
! is_wanted tests || check 'make test' scripts/test.sh
! is_wanted proofs || check 'make prove' proofs/run.sh
! is_wanted theorems || check 'VCC_THEOREM_EVENTS=10000000 cargo test -p vcc-engine --test engine theorems' \
	VCC_THEOREM_EVENTS=10000000 "${cargo[@]}" test --package vcc-engine --test engine theorems -- --nocapture
! is_wanted faults || check 'faults/run.sh' faults/run.sh
! is_wanted sanitizers || check 'scripts/sanitize.sh' scripts/sanitize.sh
if is_wanted fuzz; then
	check 'fuzz/run.sh --steps 1000000000 engine' fuzz/run.sh --steps 1000000000 engine
	check 'fuzz/run.sh --seconds 120' fuzz/run.sh --seconds 120
fi
! is_wanted stacks || check 'cargo test -p vcc-port --test foreign -- --ignored' \
	"${cargo[@]}" test --package vcc-port --test foreign -- --ignored --nocapture
! is_wanted peers || check 'VCC_DISHONEST=20000 cargo test -p vcc-port --test conformance dishonest' \
	VCC_DISHONEST=20000 "${cargo[@]}" test --package vcc-port --test conformance dishonest -- --nocapture
# A thousand connections per second for ten minutes: none may be left.
! is_wanted expiry || check 'VCC_EXPIRY_SECONDS=600 cargo test -p vcc-port --lib expiry' \
	VCC_EXPIRY_SECONDS=600 "${cargo[@]}" test --package vcc-port --lib expiry -- --nocapture
! is_wanted races || check 'VCC_RACE_SECONDS=3600 cargo test -p vcc-port --lib races' \
	VCC_RACE_SECONDS=3600 "${cargo[@]}" test --package vcc-port --lib races -- --nocapture
if is_wanted chaos; then
	check 'VCC_CHAOS_SEEDS=100 cargo test -p vcc-lab --lib chaos' \
		VCC_CHAOS_SEEDS=100 "${cargo[@]}" test --package vcc-lab --lib chaos -- --nocapture
	check 'VCC_CHAOS_EVENTS=300 cargo test -p vcc --test command chaos' \
		VCC_CHAOS_EVENTS=300 "${cargo[@]}" test --package vcc --test command chaos -- --nocapture
fi
! is_wanted soak || check 'VCC_SOAK_SECONDS=3600 cargo test -p vcc --test command soak' \
	VCC_SOAK_SECONDS=3600 "${cargo[@]}" test --package vcc --test command soak -- --nocapture
if is_wanted moves; then
	scripts/fetch-qemu.sh >/dev/null || echo 'verify: without QEMU 10, cards do not move' >&2
	for what in kernel domain; do
		check "VCC_MOVES=50 cargo test -p vcc --test command moving::$what -- --ignored" VCC_MOVES=50 \
			"${cargo[@]}" test --package vcc --test command "moving::$what" -- --ignored --nocapture --test-threads 1
	done
fi
! is_wanted release || check 'scripts/check-reproducible.sh' scripts/check-reproducible.sh
! is_wanted upgrade || check 'scripts/check-upgrade.sh' scripts/check-upgrade.sh
! is_wanted fleet || check 'VCC_FLEET=1000 cargo test --release -p vcc-kube --test fleet -- --ignored' \
	VCC_FLEET=1000 "${cargo[@]}" test --release --package vcc-kube --test fleet -- --ignored --nocapture
! is_wanted x86 || check 'scripts/check-x86.sh' scripts/check-x86.sh
! is_wanted accecn || check 'scripts/check-accecn.sh' scripts/check-accecn.sh
! is_wanted kernels || check 'scripts/check-kernels.sh' scripts/check-kernels.sh "$VCC"
! is_wanted experiments || experiments
! is_wanted bench || bench

if is_wanted experiments || is_wanted bench; then
	"$VCC" lab report "$RESULTS" --output "$RESULTS"/index.html --record || failed=1
fi
printf '\n%s' "$verdicts"
exit "$failed"
