#!/bin/bash
# Runs every experiment at full length, figure 11 on both stacks, guests that are not Linux, ten
# minutes of short connections, and the datapath's benchmarks, compiles PVTCP for x86, proves the
# engine's laws, and fuzzes: the engine for 10^9 calls. Prints each experiment's verdict and writes
# figures and plots to results/, with a report in results/index.html. Fails if an experiment is not
# valid or not reproduced; an undecided one is only reported.
set -u
cd "$(dirname "$0")/.." || exit 1

VCC=${VCC:-target/release/vcc}
RESULTS=${RESULTS:-results}
mkdir -p "$RESULTS"
failed=0
verdicts=

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

ids=$("$VCC" lab list | awk 'NR > 1 { print $1 }')
if [ -z "$ids" ]; then
	echo "verify: $VCC lists no experiments" >&2
	exit 1
fi
for id in $ids; do
	run "$id" "$id"
done
run vcc-fig11-modern vcc-fig11 --stack modern
# shellcheck disable=SC2086 # CARGO may be several words
${CARGO:-cargo} test --package vcc-port --test foreign -- --ignored --nocapture || failed=1
# A thousand connections per second for ten minutes: none may be left.
# shellcheck disable=SC2086 # CARGO may be several words
VCC_EXPIRY_SECONDS=600 ${CARGO:-cargo} test --package vcc-port --lib expiry -- --nocapture || failed=1
"${CHECK_X86:-scripts/check-x86.sh}" || failed=1
"${PROVE:-proofs/run.sh}" || failed=1
"${FUZZ:-fuzz/run.sh}" --steps 1000000000 engine || failed=1
"${FUZZ:-fuzz/run.sh}" --seconds 300 || failed=1
"$VCC" bench datapath --json "$RESULTS"/bench-datapath.json || failed=1
"$VCC" bench connections --json "$RESULTS"/bench-connections.json || failed=1
"$VCC" bench host --json "$RESULTS"/bench-host.json || failed=1
"$VCC" bench domain --json "$RESULTS"/bench-domain.json || failed=1
"$VCC" bench ports --json "$RESULTS"/bench-ports.json || failed=1
"$VCC" bench throughput --json "$RESULTS"/bench-throughput.json || failed=1
"$VCC" bench virtual --json "$RESULTS"/bench-virtual.json || failed=1

"$VCC" lab report "$RESULTS" --output "$RESULTS"/index.html --markdown README.md \
	--markdown docs/results.md --markdown docs/performance.md || failed=1

printf '\n%s' "$verdicts"
exit "$failed"
