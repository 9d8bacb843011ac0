#!/bin/sh
# Prints what is in the binaries and images of a release, as CycloneDX 1.6: `sbom.sh
# ARCHITECTURE=DIRECTORY...`, with the images' root directories. The crates that are linked, with the checksums
# of Cargo.lock; libbpf, which one of them brings; Rust's standard library; and the Debian packages of the
# libraries that a binary needs and an image contains.
#
# https://cyclonedx.org/docs/1.6/json/
# shellcheck disable=SC2086 # CARGO may be several words
set -eu
cd "$(dirname "$0")/../.."

. scripts/release/common.sh

CARGO=${CARGO:-cargo}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
version=$(version_of_sources)
created=$(date --utc --date="@$SOURCE_DATE_EPOCH" +%FT%TZ)

# What runs: neither tests and builds need it, nor does the compiler alone, as macros.
for architecture in $architectures; do
	$CARGO tree --locked --package vcc --package vcc-lab --package vcc-guest --edges normal --target "$(triple_of "$architecture")" --prefix none \
		--no-dedupe --format '{p}|{l}|{r}'
done | LC_ALL=C sort -u | grep -v ' (proc-macro)' | grep -vF "($PWD/" >"$work/crates"
[ -s "$work/crates" ] || fail 'cargo tree names no crate'

# A line for each component: type|name|version|purl|license|sha256|repository
awk -F '|' -v OFS='|' '
	FNR == 1 { file++ }
	# Cargo.lock: `name = "x"`, `version = "y"` and `checksum = "z"`, one after the other.
	file == 1 {
		split($0, word, "\"")
		if (/^name = /) name = word[2]
		if (/^version = /) version = word[2]
		if (/^checksum = /) sum[name " " version] = word[2]
		next
	}
	{
		split($1, word, " ")
		version = substr(word[2], 2)
		license = $2
		gsub("/", " OR ", license)
		print "library", word[1], version, "pkg:cargo/" word[1] "@" version, license, \
			sum[word[1] " " version], $3
		if (word[1] == "libbpf-sys") {
			sub(".*[+]v", "", version)
			print "library", "libbpf", version, "pkg:github/libbpf/libbpf@v" version, \
				"LGPL-2.1-only OR BSD-2-Clause", "", "https://github.com/libbpf/libbpf"
		}
	}' Cargo.lock "$work/crates" >"$work/components"
rust=$(rustc --version | cut -d ' ' -f 2)
echo "library|rust-std|$rust|pkg:github/rust-lang/rust@$rust|MIT OR Apache-2.0||https://github.com/rust-lang/rust" \
	>>"$work/components"
for image in "$@"; do
	architecture=${image%%=*}
	for copyright in "${image#*=}"/usr/share/doc/*/copyright; do
		package=$(basename "$(dirname "$copyright")")
		dpkg-query --show --showformat \
			"library|\${Package}|\${Version}|pkg:deb/debian/\${Package}@\${Version}?arch=\${Architecture}|||\n" \
			"$package:$architecture" || fail "scripts/install-deps.sh release installs $package"
	done
done >>"$work/components"

awk -F '|' -v version="$version" -v created="$created" '
	function quoted(text) {
		gsub(/["\\]/, "\\\\&", text)
		return "\"" text "\""
	}
	# In a purl, `+` stands for itself and `:` and `~` are escaped (package-url, "Encoding").
	function encoded(purl, parts) {
		split(purl, parts, "@")
		gsub(/\+/, "%2B", parts[2])
		gsub(/~/, "%7E", parts[2])
		return parts[1] "@" parts[2]
	}
	BEGIN {
		print "{"
		print "  \"$schema\": \"http://cyclonedx.org/schema/bom-1.6.schema.json\","
		print "  \"bomFormat\": \"CycloneDX\","
		print "  \"specVersion\": \"1.6\","
		print "  \"version\": 1,"
		print "  \"metadata\": {"
		print "    \"timestamp\": " quoted(created) ","
		print "    \"component\": {"
		print "      \"type\": \"application\", \"bom-ref\": \"vcc\", \"name\": \"vcc\", \"version\": " quoted(version) ","
		print "      \"licenses\": [{ \"expression\": \"Apache-2.0 AND (GPL-2.0-only OR BSD-2-Clause)\" }]"
		print "    }"
		print "  },"
		printf "  \"components\": ["
	}
	{
		purl = encoded($4)
		printf "%s\n    {\n      \"type\": %s, \"bom-ref\": %s,\n      \"name\": %s, \"version\": %s, \"purl\": %s", \
			(NR > 1 ? "," : ""), quoted($1), quoted(purl), quoted($2), quoted($3), quoted(purl)
		if ($5) printf ",\n      \"licenses\": [{ \"expression\": %s }]", quoted($5)
		if ($6) printf ",\n      \"hashes\": [{ \"alg\": \"SHA-256\", \"content\": %s }]", quoted($6)
		if ($7) printf ",\n      \"externalReferences\": [{ \"type\": \"vcs\", \"url\": %s }]", quoted($7)
		printf "\n    }"
		refs = refs (NR > 1 ? ", " : "") quoted(purl)
	}
	END {
		print "\n  ],"
		print "  \"dependencies\": [{ \"ref\": \"vcc\", \"dependsOn\": [" refs "] }]"
		print "}"
	}' "$work/components"
