#!/bin/sh
# Builds the commands for a release: `build.sh ARCHITECTURE [static COMMAND]`, as Debian names it (amd64,
# arm64). Prints the directory of the binaries. With `static`, it builds that command alone, linked statically.
#
# The same sources give the same bytes in any directory of any machine with the same compilers: no path of
# this build is in it, no time, and no name.
# shellcheck disable=SC2086 # CARGO may be several words
set -eu
cd "$(dirname "$0")/../.."

. scripts/release/common.sh

CARGO=${CARGO:-cargo}
case "${1:-}" in
amd64 | arm64) ;;
*) fail "there is no release for '${1:-}': amd64 and arm64" ;;
esac
triple=$(triple_of "$1")
gnu=$(gnu_of "$1")
sources=$(pwd -P)
target_dir=$(realpath -m "${CARGO_TARGET_DIR:-target}")
sysroot=$(rustc --print sysroot)
[ -d "$sysroot/lib/rustlib/$triple/lib" ] ||
	fail "Rust has no standard library for $triple: rustup target add $triple"

# The last that fits is used, so the target directory, which may be among the sources, comes after them.
RUSTFLAGS="--remap-path-prefix=$(realpath -m "${CARGO_HOME:-$HOME/.cargo}")=/cargo \
--remap-path-prefix=$sysroot=/rust --remap-path-prefix=$sources=/vcc --remap-path-prefix=$target_dir=/target"
# The build's ID would be a digest of the debug information, too, which names the directory of the build.
RUSTFLAGS="$RUSTFLAGS -C link-arg=-Wl,--build-id=none"
prefixes="-ffile-prefix-map=$sources=/vcc -ffile-prefix-map=$target_dir=/target"
# As cargo and the crate `cc` name the variables of a target.
name=$(echo "$triple" | tr - _)
upper=$(echo "$name" | tr '[:lower:]' '[:upper:]')
export RUSTFLAGS "CC_$name=$gnu-gcc" "AR_$name=$gnu-ar" "CFLAGS_$name=$prefixes" \
	"CARGO_TARGET_${upper}_LINKER=$gnu-gcc" \
	PKG_CONFIG_ALLOW_CROSS=1 "PKG_CONFIG_LIBDIR_$name=/usr/lib/$gnu/pkgconfig:/usr/share/pkgconfig"
# Results say which commit measured them.
VCC_COMMIT=${VCC_COMMIT:-$(git describe --always --dirty 2>/dev/null || true)}
export VCC_COMMIT
unset CARGO_ENCODED_RUSTFLAGS

if [ "${2-}" = static ]; then
	# Another directory: other flags would replace what is there.
	target_dir=$target_dir/static
	libraries=$("$gnu-gcc" --print-file-name=libelf.a)
	[ -e "$libraries" ] || fail "there is no libelf.a for $1: scripts/install-deps.sh release"
	RUSTFLAGS="$RUSTFLAGS -C target-feature=+crt-static"
	# After libbpf-sys's own directory: the system's libbpf.a is an older one.
	export "LIBBPF_SYS_LIBRARY_PATH_$name=$(dirname "$libraries")"
	# Debian 13's libelf uses it.
	case $(PKG_CONFIG_LIBDIR=/usr/lib/$gnu/pkgconfig:/usr/share/pkgconfig pkg-config --static --libs libelf) in
	*-lzstd*) RUSTFLAGS="$RUSTFLAGS -C link-arg=-lzstd" ;;
	esac
	$CARGO build --profile dist --locked --package "$3" --features static --target "$triple" \
		--target-dir "$target_dir" >&2
	echo "$target_dir/$triple/dist"
	exit
fi
$CARGO build --profile dist --locked --package vcc --package vcc-lab --package vcc-guest --target "$triple" --target-dir "$target_dir" >&2
echo "$target_dir/$triple/dist"
