#!/bin/bash
# Runs every experiment at full length, figure 11 on both stacks, and what the datapath costs; says
# which experiment reproduced its paper. The figures and plots are in results/, and all of them on
# one page in results/index.html.
set -u
cd "$(dirname "$0")/.." || exit 1

VCC=${VCC:-target/release/vcc}
mkdir -p results
failed=0
verdicts=

# The whole report's verdict, not that of a case in it.
reproduced() {
	grep -q '^  "reproduced": true' "$1"
}

run() {
	local name=$1 found
	shift
	if ! "$VCC" lab run "$@" --json "results/$name.json" --plot "results/$name.svg"; then
		found='NOT valid'
		failed=1
	elif reproduced "results/$name.json"; then
		found=reproduced
	else
		found='valid, NOT reproduced'
		failed=1
	fi
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
"$VCC" bench datapath --json results/bench-datapath.json || failed=1
"$VCC" bench throughput --json results/bench-throughput.json || failed=1

"$VCC" lab report results --output results/index.html || failed=1

printf '\n%s' "$verdicts"
exit "$failed"
