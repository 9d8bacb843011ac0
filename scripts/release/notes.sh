#!/bin/sh
# Prints what CHANGELOG.md says of a version: `notes.sh VERSION`. What is not released yet is under
# `Unreleased`.
set -eu
cd "$(dirname "$0")/../.."

. scripts/release/common.sh

section() {
	awk -v heading="## $1" '
		/^## / { inside = ($0 == heading || index($0, heading " ") == 1); next }
		inside { print }' CHANGELOG.md
}

notes=$(section "$1")
title="vcc $1"
if [ -z "$notes" ]; then
	notes=$(section Unreleased)
	title="vcc $1, not released yet"
fi
[ -n "$notes" ] || fail "CHANGELOG.md has neither a section '## $1' nor one '## Unreleased'"
# A page of its own: its headings begin at the top.
printf '# %s\n%s\n' "$title" "$(echo "$notes" | sed 's/^###/##/')"
