#!/bin/bash
# Runs what takes longer than `make test` may: the proofs and theorems, the faults that tests must catch,
# sanitizers, fuzzing, stacks that are not Linux, peers that are not honest, ten minutes of short
# connections, a soak, virtual machines that migrate, a release made twice, upgrades and downgrades, a
# thousand agents of a cluster, other readers of recordings, PVTCP's patch in Debian's kernel, Debian's kernels in QEMU, and all
# experiments and benchmarks whose figures are older than the code that they depend on.
#
#   verify.sh [PART...]    all parts, or the ones that are named: tests proofs theorems faults
#                          sanitizers fuzz stacks peers expiry races chaos soak moves release
#                          upgrade fleet readers pvtcp accecn kernels experiments bench
#
# Experiments and benchmarks are recorded one by one (`vcc-lab renew`): in results/data, and in README.md
# and docs/. Interrupted, they continue with the next call; with MINUTES=N in the environment, those
# begin that fit into N minutes. Their figures and plots go to results/, with a page in
# results/index.html. The figures of each other check go to results/data/evidence, and the one that
# decides to docs/evidence.md.
# Fails if a check does, or if an experiment is not valid or not reproduced; an undecided one is only
# reported.
set -u
cd "$(dirname "$0")/.." || exit 1

CARGO=${CARGO:-cargo}
VCC=${VCC:-target/release/vcc}
VCC_LAB=${VCC_LAB:-target/release/vcc-lab}
RESULTS=${RESULTS:-results}
EVIDENCE=${EVIDENCE:-docs/evidence.md}
DATA=${DATA:-results/data}
mkdir -p "$RESULTS"
failed=0
verdicts=

parts=${*:-tests proofs theorems faults sanitizers fuzz stacks peers expiry races chaos soak moves release upgrade fleet readers pvtcp accecn kernels experiments bench}
for part in $parts; do
	case $part in
	tests | proofs | theorems | faults | sanitizers | fuzz | stacks | peers | expiry | races) ;;
	chaos | soak | moves | release | upgrade | fleet | readers | pvtcp | accecn | kernels | experiments | bench) ;;
	*)
		echo "verify: there is no part $part; the head of $0 has the list" >&2
		exit 2
		;;
	esac
done
is_wanted() {
	[[ " $parts " == *" $1 "* ]]
}

# deciding NAME: the part of a check's figures, on stdin, that its row shows: what a pattern below
# finds, or else the first clauses, up to 72 characters.
deciding() {
	local pattern
	# shellcheck disable=SC2016 # The backquotes are those of the figures.
	case $1 in
	expiry) pattern='[0-9]+ left [^,;]* after the last' ;;
	moves-domain) pattern='[0-9]+ migrations behind `[^`]*` in transfers of [0-9]+ bytes: each whole' ;;
	upgrade) pattern='[0-9]+ exchanges of 2 MiB, each whole' ;;
	fleet) pattern='[0-9]+ ms at p99' ;;
	*) pattern= ;;
	esac
	paste -sd '|' | sed 's/|/; /g' | PATTERN=$pattern awk '
		ENVIRON["PATTERN"] && match($0, ENVIRON["PATTERN"]) { print substr($0, RSTART, RLENGTH); next }
		{
			while (length($0) > 72 && sub(/[,;] ([^,;]|[,;][^ ])*$/, "")) { }
			if (length($0) > 72) sub(/: .*/, "")
			print
		}'
}

# note NAME COMMAND PASSED: writes the figures on stdin into a file of their own, and what decides into
# the row of $EVIDENCE that links to it.
note() {
	local figures text
	figures=$(cat)
	mkdir -p "$DATA/evidence"
	printf 'command: %s\ndate: %s\npassed: %s\n\n%s\n' "$2" "$(date -u +%F)" "$3" "$figures" \
		>"$DATA/evidence/$1.txt"
	text=$(LINK="(../results/data/evidence/$1.txt)" COMMAND=$2 PASSED=$3 TODAY=$(date -u +%F) \
		SHORT=$(deciding "$1" <<<"$figures") awk -F ' [|] ' -v OFS=' | ' '
		index($0, ENVIRON["LINK"]) && index($0, "`" ENVIRON["COMMAND"] "`") && NF == 4 {
			word = ENVIRON["PASSED"] == "yes" ? "yes" : "**no**"
			$3 = "[" word "]" ENVIRON["LINK"] (ENVIRON["SHORT"] ? ": " ENVIRON["SHORT"] : "")
			$4 = ENVIRON["TODAY"] " |"
			found = 1
		}
		{ print }
		END { exit !found }' "$EVIDENCE") || {
		echo "verify: no row of $EVIDENCE is about \`$2\` and links to evidence/$1.txt" >&2
		failed=1
		return
	}
	printf '%s\n' "$text" >"$EVIDENCE"
}

# check NAME LABEL COMMAND...: runs the command, as the page shows it in LABEL. Its figures are what it
# prints behind `figure: `, or its last line.
check() {
	local name=$1 label=$2 log=$RESULTS/check.txt passed=yes figures=
	shift 2
	printf '\n== %s\n' "$label"
	env "$@" 2>&1 | tee "$log"
	if [ "${PIPESTATUS[0]}" = 0 ]; then
		figures=$(sed -n 's/^\(test .* \.\.\. \)\?figure: //p' "$log")
		[ -n "$figures" ] || figures=$(grep . "$log" | tail -n 1)
	else
		passed=no
		failed=1
	fi
	note "$name" "$label" "$passed" <<<"$figures"
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
	"$VCC_LAB" run "$@" --record --json "$RESULTS/$name.json" --plot "$RESULTS/$name.svg" || status=$?
	[ "$status" = 0 ] || failed=1
	found=$([ ! -e "$RESULTS/$name.json" ] || outcome "$RESULTS/$name.json")
	case $found in
	reproduced) ;;
	undecided) found="undecided: repeat with more runs: \`vcc-lab run $* --runs N\`" ;;
	not-reproduced) found='NOT reproduced' ;;
	not-valid) found='NOT valid' ;;
	*) found='NOT completed' failed=1 ;;
	esac
	verdicts+="$name: $found"$'\n'
}

# renew [OPTION...]: measures again what is older than the code that it depends on.
renew() {
	printf '\n== vcc-lab renew%s\n' "${*:+ $*}"
	"$VCC_LAB" renew --results "$RESULTS" ${MINUTES:+--minutes "$MINUTES"} "$@" || failed=1
}

export CARGO
# shellcheck disable=SC2206 # CARGO may be several words
cargo=($CARGO)
! is_wanted tests || check tests 'make test' scripts/test.sh
! is_wanted proofs || check proofs 'make prove' proofs/run.sh
! is_wanted theorems || check theorems 'VCC_THEOREM_EVENTS=10000000 cargo test -p vcc-engine --test engine theorems' \
	VCC_THEOREM_EVENTS=10000000 "${cargo[@]}" test --package vcc-engine --test engine theorems -- --nocapture
! is_wanted faults || check faults 'faults/run.sh' faults/run.sh
! is_wanted sanitizers || check sanitizers 'scripts/sanitize.sh' scripts/sanitize.sh
if is_wanted fuzz; then
	check fuzz-engine 'fuzz/run.sh --steps 1000000000 engine' fuzz/run.sh --steps 1000000000 engine
	check fuzz-interfaces 'fuzz/run.sh --seconds 120' fuzz/run.sh --seconds 120
fi
! is_wanted stacks || check stacks 'cargo test -p vcc-lab --test foreign -- --ignored --test-threads 1' \
	"${cargo[@]}" test --package vcc-lab --test foreign -- --ignored --nocapture --test-threads 1
! is_wanted peers || check peers 'VCC_DISHONEST=20000 cargo test -p vcc-port --test conformance dishonest' \
	VCC_DISHONEST=20000 "${cargo[@]}" test --package vcc-port --test conformance dishonest -- --nocapture
# A thousand connections per second for ten minutes: none may be left.
! is_wanted expiry || check expiry 'VCC_EXPIRY_SECONDS=600 cargo test -p vcc-port --lib expiry' \
	VCC_EXPIRY_SECONDS=600 "${cargo[@]}" test --package vcc-port --lib expiry -- --nocapture
! is_wanted races || check races 'VCC_RACE_SECONDS=3600 cargo test -p vcc-port --lib races' \
	VCC_RACE_SECONDS=3600 "${cargo[@]}" test --package vcc-port --lib races -- --nocapture
if is_wanted chaos; then
	check chaos-path 'VCC_CHAOS_SEEDS=100 cargo test -p vcc-lab --lib chaos' \
		VCC_CHAOS_SEEDS=100 "${cargo[@]}" test --package vcc-lab --lib chaos -- --nocapture
	check chaos-daemon 'VCC_CHAOS_EVENTS=300 cargo test -p vcc --test command chaos' \
		VCC_CHAOS_EVENTS=300 "${cargo[@]}" test --package vcc --test command chaos -- --nocapture
fi
! is_wanted soak || check soak 'VCC_SOAK_SECONDS=3600 cargo test -p vcc --test command soak' \
	VCC_SOAK_SECONDS=3600 "${cargo[@]}" test --package vcc --test command soak -- --nocapture
if is_wanted moves; then
	scripts/fetch-qemu.sh >/dev/null || echo 'verify: without QEMU 10, cards do not move' >&2
	for what in kernel domain; do
		check "moves-$what" "VCC_MOVES=50 cargo test -p vcc --test command moving::$what -- --ignored" VCC_MOVES=50 \
			"${cargo[@]}" test --package vcc --test command "moving::$what" -- --ignored --nocapture --test-threads 1
	done
fi
! is_wanted release || check release 'scripts/check-reproducible.sh' scripts/check-reproducible.sh
! is_wanted upgrade || check upgrade 'scripts/check-upgrade.sh' scripts/check-upgrade.sh
! is_wanted fleet || check fleet 'VCC_FLEET=1000 cargo test --release -p vcc-kube --test fleet -- --ignored' \
	VCC_FLEET=1000 "${cargo[@]}" test --release --package vcc-kube --test fleet -- --ignored --nocapture
! is_wanted readers || check readers 'scripts/check-record.sh target/release/vcc' scripts/check-record.sh "$VCC"
! is_wanted pvtcp || check pvtcp 'scripts/check-pvtcp.sh' scripts/check-pvtcp.sh
! is_wanted accecn || check accecn 'scripts/check-accecn.sh' scripts/check-accecn.sh
! is_wanted kernels || check kernels 'scripts/check-kernels.sh' scripts/check-kernels.sh "$VCC"
if is_wanted experiments && is_wanted bench; then
	renew
elif is_wanted experiments; then
	renew --except 'bench-*'
elif is_wanted bench; then
	renew --only 'bench-*'
fi
# Once it is recorded, it is renewed like the others.
if is_wanted experiments && [ ! -e "$DATA/vcc-fig11-live-modern.json" ]; then
	run vcc-fig11-modern vcc-fig11 --stack modern
fi

# A page is made of full results, which only this checkout's own measurements have left.
if is_wanted experiments && grep -qs '^  "experiment": ' "$RESULTS"/*.json; then
	"$VCC_LAB" report "$RESULTS" --output "$RESULTS"/index.html || failed=1
fi
printf '\n%s' "$verdicts"
exit "$failed"
