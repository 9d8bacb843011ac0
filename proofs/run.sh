#!/bin/bash
# Proves what proofs/list claims of the engine, and that each proof fails on an engine with a fault.
#
#   run.sh [--quick] [--log DIR] [NAME...]    all proofs, or those that are named
#
# --quick: the ones that `make test` runs, of a single underlay. The logs are kept in DIR. Exit code 77:
# there is no checker.
set -u
cd "$(dirname "$0")/.." || exit 1

quick='' log=''
while [ $# -gt 0 ]; do
	case $1 in
	--quick) quick=1 ;;
	--log) log=$2 && shift ;;
	*) break ;;
	esac
	shift
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
log=${log:-$work/log}
mkdir -p "$log" || exit 1
cbmc=$(scripts/fetch-cbmc.sh) || exit
# The path of a solver must have no spaces: CBMC leaves it to a shell.
solver='--sat-solver cadical'
cadical=$(command -v "$(dirname "$cbmc")/cadical" || command -v cadical) &&
	solver="--external-sat-solver $cadical"
builtin=$(${CC:-cc} -print-file-name=include)
most_minutes=25
if [ -n "$quick" ]; then
	underlays=dctcp
else
	underlays=$(sed -n 's/^VCC_CC(\([a-z_]*\),.*/\1/p' engine/cc/*.h; echo loaded)
fi

# prove ENGINE SOURCE CASE UNDERLAY [OPTION...]: 0 if all claims hold, 10 if one does not.
prove() {
	local options=("${@:5}")
	[ "$3" = - ] || options+=("-DASSUME(s)=$3")
	[ "$4" = any ] || options+=("-DUNDERLAY=UNDERLAY_$4")
	# Of CPU time, for the checker and for the solver: beside other work they may wait long for it.
	ulimit -t $((most_minutes * 60))
	# shellcheck disable=SC2086 # the solver is two words
	"$cbmc" "proofs/$2" -I "$1" -I datapath -I "$builtin" -D__STDC_HOSTED__=0 \
		"${options[@]}" --bounds-check --pointer-check --div-by-zero-check \
		--signed-overflow-check --undefined-shift-check --unwind 40 --unwinding-assertions \
		$solver --slice-formula
}

# job NAME SOURCE CASE UNDERLAY FAULT: one line about a proof, or about its twin with a fault.
job() {
	local engine=engine out=$log/$1-$4${5:+-$5}.txt began=$SECONDS status
	if [ -n "$5" ]; then
		engine=$work/$1-$4-$5/engine
		mkdir -p "$engine" && cp -r engine/. "$engine"
		patch -s -d "$engine/.." -p1 <"faults/$5.patch" || return 1
	fi
	# Of an engine with a fault, the first counterexample will do.
	prove "$engine" "$2" "$3" "$4" ${5:+--stop-on-fail} >"$out" 2>&1
	status=$?
	local took=$((SECONDS - began))
	local claims
	claims=$(sed -n 's/^\*\* [0-9]* of \([0-9]*\) failed.*/\1/p' "$out")
	if [ -z "$5" ] && [ $status -eq 0 ]; then
		printf 'proved  %-16s %-15s %6s claims %5d s\n' "$1" "$4" "$claims" $took
	elif [ -n "$5" ] && [ $status -eq 10 ]; then
		printf 'caught  %-16s %-15s %s\n' "$1" "$4" "$5: $(sed -n '/^Violated property:$/ { n; n; s/^ *//p }' "$out")"
	else
		local why
		why=$(grep -h ': FAILURE$\|rror' "$out" | head -n 5)
		[ -z "$5" ] || why="the proof holds with the fault $5"
		grep -q '^VERIFICATION ' "$out" || why="no result: $(tail -n 1 "$out" | cut -c -80)"
		! grep -q 'Killed' "$out" || why="the checker has used up its $most_minutes minutes of CPU time"
		printf 'FAILED  %-16s %-15s %s\n' "$1" "$4" "$why"
		return 1
	fi
}
export -f job prove
export work log cbmc solver builtin most_minutes

while read -r name source when case fault; do
	[[ $name != \#* && -n $name ]] || continue
	[ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
	[ -z "$quick" ] || [ "$when" = quick ] || continue
	each=$underlays
	# Some are about certain underlays only, or about any at once.
	only=$(sed -n 's/^.* underlays: \(.*\) .*$/\1/p' "proofs/$source")
	case $only in
	'') ;;
	any) each=any ;;
	*) each=$(grep -xF "${only// /$'\n'}" <<<"$underlays") ;;
	esac
	for underlay in $each; do
		printf '%s\0' "$name" "$source" "$case" "$underlay" ''
	done
	printf '%s\0' "$name" "$source" "$case" "$(echo "$each" | grep -x 'any\|dctcp')" "$fault"
done <proofs/list >"$work/jobs"
[ -s "$work/jobs" ] || {
	echo "proofs: no proof is called $*; proofs/list has their names" >&2
	exit 1
}
# xargs: 123 if a job failed.
# shellcheck disable=SC2016 # the arguments of the inner shell
xargs -0 -n 5 -P "$(nproc)" bash -c 'job "$@"' job <"$work/jobs" | tee "$work/said"
status=${PIPESTATUS[0]}
awk -v took="$SECONDS" '
	$1 == "proved" { proofs++; claims += $4 }
	$1 == "caught" { caught++ }
	$1 == "FAILED" { failed++ }
	END {
		printf "%d proofs of %d claims, %d faults caught, %d failed, in %d s\n",
			proofs, claims, caught, failed, took
	}' "$work/said"
[ "$status" = 0 ]
