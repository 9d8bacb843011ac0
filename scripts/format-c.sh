#!/bin/sh
# Runs clang-format on all C files, with clang-format's options (-i, or --dry-run -Werror).
# Exit code 77: skipped, for the reason in the last line.
set -eu
cd "$(dirname "$0")/.."

for formatter in clang-format-16 clang-format; do
	if "$formatter" --version 2>/dev/null | grep -q 'version 16\.'; then
		find engine datapath guest crates proofs fuzz -name '*.[ch]' -print0 |
			xargs -0 "$formatter" --style=file "$@"
		exit
	fi
done
echo 'format-c: clang-format 16 is missing, and others format differently: on Debian 12, make deps' >&2
exit 77
