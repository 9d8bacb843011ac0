#!/bin/bash
# Runs the long tests, then every experiment at full length, and says which reproduced its paper.
# The figures and plots are in results/.
set -u
cd "$(dirname "$0")/.." || exit 1

CARGO=${CARGO:-cargo}
VCC=${VCC:-target/release/vcc}
mkdir -p results
failed=0

$CARGO test --release --workspace --no-fail-fast -- --ignored || failed=1

verdict() {
	python3 -c 'import json, sys
report = json.load(open(sys.argv[1]))
print("reproduced" if report["reproduced"] else "valid, NOT reproduced")
sys.exit(not report["reproduced"])' "$1"
}

verdicts=
for id in $("$VCC" lab list | awk 'NR > 1 { print $1 }'); do
	if ! "$VCC" lab run "$id" --json "results/$id.json" --plot "results/$id.svg"; then
		found='NOT valid'
		failed=1
	else
		found=$(verdict "results/$id.json") || failed=1
	fi
	verdicts+="$id: $found"$'\n'
done

printf '\n%s' "$verdicts"
exit "$failed"
