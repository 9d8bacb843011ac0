#!/bin/bash
# Puts each fault of faults/list into a copy of the source, and runs the test that has to fail with it.
#
#   run.sh [--quick] [--log DIR] [NAME...]    all faults, or those that are named
#
# --quick: the ones that `make test` tries; of all others it checks only that they apply. The logs are
# kept in DIR. A patch that applies only with fuzz fails: it could not be taken back as it was put in.
#
# Most faults are functions of the engine, and their tests run it natively. Such a test is built once, with the
# engine as a shared library, and only this is compiled with each fault.
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
target=${CARGO_TARGET_DIR:-$PWD/target}
work=$target/faults
copy=$work/source shared=$work/shared
log=${log:-$work/log}
mkdir -p "$copy" "$shared" "$log" || exit 1
exec 9>"$work/lock"
flock -n 9 || {
	echo "faults: another run uses $work" >&2
	exit 1
}
patch=$PWD/faults

# Copies what has changed, so that cargo builds only that, and removes what is gone.
git ls-files --cached --others --exclude-standard | sort >"$work/files" || exit 1
digests() {
	(cd "$1" && grep -vx 'Cargo\.\(toml\|lock\)' "$work/files" | xargs -rd '\n' sha256sum 2>/dev/null | sort)
}
comm -23 <(digests .) <(digests "$copy") | cut -c 67- | xargs -rd '\n' cp --parents -t "$copy" || exit 1
(cd "$copy" && find . -type f -printf '%P\n' | sort | comm -13 "$work/files" - | xargs -rd '\n' rm)
# The copy's crates have another version: cargo takes packages of the same name, version and place in their
# workspace for the same, and the copy uses the dependencies that the tests have built.
exchange() {
	cmp -s - "$copy/$1" <<<"$2" || echo "$2" >"$copy/$1"
}
exchange Cargo.toml "$(sed '0,/^version = "/s//&9/' Cargo.toml)"
exchange Cargo.lock "$(sed '/^name = "vcc/ { n; s/^version = "/&9/ }' Cargo.lock)"

clang=${CLANG:-$(command -v clang-16 clang-19 clang | head -n 1)}

# share DIRECTORY: compiles its engine as crates/vcc-engine/build.rs does, for the tests. Not optimized: it is
# compiled for one test, and cc at -O1 takes four times as long.
share() {
	"$clang" -shared -fPIC -O0 -std=c11 -ffreestanding -fexceptions -DVCC_CHECK_LAWS -I "$1/engine" \
		-I "$1/datapath" crates/vcc-engine/{native,frames}.c -o "$shared/libvcc_engine.so"
}

failed=0 tried=0 caught=0
say() {
	printf '%-7s %-32s %s\n' "$@"
}

# apply NAME [DIRECTORY [--dry-run]]
apply() {
	patch -s --fuzz=0 ${3:+"$3"} -d "${2:-$copy}" -p1 <"$patch/$1.patch" && return
	say FAILED "$1" 'its patch does not apply: make it anew'
	return 1
}

# has_engine_alone NAME PACKAGE: is the fault one of functions of the engine, and the package without kernel
# programs? The bindings in vcc.h are Rust's, too.
has_engine_alone() {
	[ "$2" != vcc-port ] && ! sed -n 's/^+++ b.//p' "$patch/$1.patch" | grep -qv '^engine/' &&
		! grep -q '^+++ b/engine/vcc\.h' "$patch/$1.patch"
}

# run PACKAGE BINARY TEST: cargo builds the binary if it has to. By the workspace, whose features the
# dependencies were built with. Not optimized: a binary is built for one test.
run() {
	local which=(--workspace --test "$2")
	[ "$2" != lib ] || which=(--package "$1" --lib)
	# shellcheck disable=SC2086 # CARGO may be several words
	(cd "$copy" && CARGO_TARGET_DIR=$target VCC_ENGINE_SHARED=$shared LD_LIBRARY_PATH=$shared \
		CARGO_PROFILE_TEST_OPT_LEVEL=0 $CARGO test --quiet --offline "${which[@]}" -- --exact "$3")
}

# try NAME PACKAGE/BINARY TEST: the test must fail with the fault, and its binary must compile, which
# is the only one that is built.
try() {
	local out=$log/$1.txt package=${2%/*} binary=${2#*/}
	if has_engine_alone "$1" "$package"; then
		rm -rf "$work/faulty" && mkdir "$work/faulty" && cp -r engine datapath "$work/faulty" || exit 1
		apply "$1" "$work/faulty" || return 1
		share "$work/faulty" >"$out" 2>&1 && run "$package" "$binary" "$3" >"$out" 2>&1
	else
		apply "$1" || return 1
		share "$copy" >"$out" 2>&1 && run "$package" "$binary" "$3" >"$out" 2>&1
		patch -s -R -d "$copy" -p1 <"$patch/$1.patch" || exit 1
	fi
	if grep -q "^    $3\$" "$out"; then
		say caught "$1" "$2 $3"
		caught=$((caught + 1))
	elif grep -q 'error' "$out" && ! grep -q '^test result' "$out"; then
		say FAILED "$1" "does not compile: $(grep -m 1 'error' "$out")"
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
		apply "$name" "$copy" --dry-run || failed=1
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
