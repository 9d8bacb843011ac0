#!/bin/sh
# Runs clang-format on all C files, with clang-format's options (-i, or --dry-run -Werror).
set -eu
cd "$(dirname "$0")/.."

for formatter in clang-format-16 clang-format; do
	if command -v "$formatter" >/dev/null; then
		find engine datapath guest crates proofs fuzz -name '*.[ch]' -print0 |
			xargs -0 "$formatter" --style=file "$@"
		exit
	fi
done
echo 'format-c: clang-format is missing: make deps' >&2
exit 1
