#!/bin/bash
# Checks that the links of installed pages lead to installed files: `links.sh DIRECTORY...`.
set -eu

dead=0
count=0
while read -r page; do
	# Without what is in blocks of code.
	while read -r target; do
		count=$((count + 1))
		[ -e "${page%/*}/$target" ] || {
			echo "links: $page: $target" >&2
			dead=1
		}
	done < <(awk '/^ *```/ { code = !code } !code' "$page" | tr '\n' ' ' | grep -o '\]([^()]*)' |
		sed 's/^](//; s/)$//; s/#.*//' | grep -v '://' | grep -E '[./]|^[A-Z]+$' | sort -u)
done < <(find "$@" -type f -name '*.md')
[ "$count" -gt 0 ] || {
	echo "links: no links in $*" >&2
	exit 1
}
exit "$dead"
