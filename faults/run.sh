#!/bin/bash
# Puts each fault of faults/list into a copy of the source, and runs the test that has to fail with it.
#
#   run.sh [--quick] [--log DIR] [NAME...]    all faults, or those that are named
#
# --quick: the ones that `make test` tries; of all others it checks only that they apply. The logs are
# kept in DIR. A patch that applies only with fuzz fails: it could not be taken back as it was put in.
set -u
cd "$(dirname "$0")/.." || exit 1

CARGO=${CARGO:-cargo}
quick='' log=''
while [ $# -gt 0 ]; do
	case $1 in
	--quick) quick=1 ;;
	--log) log=$2 && shift ;;
	*) break ;;
	esac
	shift
done
# A place of its own, so that cargo finds what it has built there before.
target=${CARGO_TARGET_DIR:-$PWD/target}/faults
copy=$target/source
log=${log:-$target/log}
mkdir -p "$copy" "$log" || exit 1
exec 9>"$target/lock"
flock -n 9 || {
	echo "faults: another run uses $target" >&2
	exit 1
}
patch=$PWD/faults

# Copies what has changed, so that cargo builds only that, and removes what is gone.
git ls-files --cached --others --exclude-standard | sort >"$target/files" || exit 1
while IFS= read -r file; do
	cmp -s "$file" "$copy/$file" || cp --parents "$file" "$copy" || exit 1
done <"$target/files"
(cd "$copy" && find . -type f -printf '%P\n' | sort | comm -13 "$target/files" - | xargs -rd '\n' rm)

failed=0 tried=0 caught=0
say() {
	printf '%-7s %-32s %s\n' "$@"
}

# apply NAME [--dry-run]
apply() {
	patch -s --fuzz=0 ${2:+"$2"} -d "$copy" -p1 <"$patch/$1.patch" && return
	say FAILED "$1" 'its patch does not apply: make it anew'
	return 1
}

# try NAME PACKAGE/BINARY TEST: the test must fail with the fault, and its binary must compile, which
# is the only one that is built.
try() {
	local out=$log/$1.txt binary=(--test "${2#*/}")
	[ "${2#*/}" != lib ] || binary=(--lib)
	apply "$1" || return 1
	# shellcheck disable=SC2086 # CARGO may be several words
	(cd "$copy" && CARGO_TARGET_DIR=$target $CARGO test --quiet --package "${2%/*}" "${binary[@]}" -- --exact "$3") \
		>"$out" 2>&1
	patch -s -R -d "$copy" -p1 <"$patch/$1.patch" || exit 1
	if grep -q "^    $3\$" "$out"; then
		say caught "$1" "$2 $3"
		caught=$((caught + 1))
	elif grep -q '^error' "$out" && ! grep -q '^test result' "$out"; then
		say FAILED "$1" "does not compile: $(grep -m 1 '^error' "$out")"
		return 1
	else
		say FAILED "$1" "$2 $3 passes with it, or is no test: $out"
		return 1
	fi
}

while read -r name when binary test; do
	[[ $name != \#* && -n $name ]] || continue
	[ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
	if [ -n "$quick" ] && [ "$when" != quick ]; then
		apply "$name" --dry-run || failed=1
		continue
	fi
	tried=$((tried + 1))
	try "$name" "$binary" "$test" || failed=1
done <faults/list
if [ $tried = 0 ]; then
	echo "faults: no fault is called $*; faults/list has their names" >&2
	exit 1
fi
echo "$caught faults of $tried caught"
exit $failed
