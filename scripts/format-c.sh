#!/bin/sh
# Runs clang-format over all C; the options are its own (-i, or --dry-run -Werror).
set -eu
cd "$(dirname "$0")/.."

for formatter in clang-format-16 clang-format; do
	if command -v "$formatter" >/dev/null; then
		find engine datapath guest crates -name '*.[ch]' -print0 |
			xargs -0 "$formatter" --style=file "$@"
		exit
	fi
done
echo 'format-c: no clang-format (make deps installs it)' >&2
exit 1
