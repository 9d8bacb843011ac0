#!/bin/sh
# Packs root directories into a container image, an OCI archive with a manifest for each architecture:
# `oci.sh ARCHIVE ARCHITECTURE=DIRECTORY...`. It needs neither Docker nor a registry, and equal
# directories give equal bytes.
#
#   GZIP_LEVEL  how well layers are compressed; default: 9
#
# https://github.com/opencontainers/image-spec: image-layout.md, image-index.md, manifest.md, config.md.
set -eu
cd "$(dirname "$0")/../.."

. scripts/release/common.sh

archive=$1
shift
version=$(version_of_sources)
created=$(date --utc --date="@$SOURCE_DATE_EPOCH" +%FT%TZ)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
layout=$work/layout
blobs=$layout/blobs/sha256
mkdir -p "$blobs"

# pack FILE DIRECTORY: with nothing of this machine or of now.
pack() {
	tar --create --file "$1" --directory "$2" --sort=name --format=gnu --owner=0 --group=0 --numeric-owner \
		--mode=u+rwX,go+rX,go-w --mtime="@$SOURCE_DATE_EPOCH" .
}

digest_of() {
	sha256sum "$1" | cut -d ' ' -f 1
}

# keep FILE TYPE: moves a file among the blobs, and prints its descriptor without the closing brace.
keep() {
	digest=$(digest_of "$1")
	printf '{"mediaType":"application/vnd.oci.image.%s","digest":"sha256:%s","size":%s' \
		"$2" "$digest" "$(stat -c %s "$1")"
	mv "$1" "$blobs/$digest"
}

labels=$(
	cat <<END
"org.opencontainers.image.title":"vcc",
"org.opencontainers.image.description":"Congestion control for guests that cannot change theirs",
"org.opencontainers.image.version":"$version",
"org.opencontainers.image.created":"$created",
"org.opencontainers.image.licenses":"Apache-2.0 AND (GPL-2.0-only OR BSD-2-Clause)"
END
)
labels=$(printf '%s' "$labels" | tr -d '\n')

manifests=
for image in "$@"; do
	architecture=${image%%=*}
	pack "$work/layer" "${image#*=}"
	unpacked=$(digest_of "$work/layer")
	gzip "-${GZIP_LEVEL:-9}n" "$work/layer"
	layer=$(keep "$work/layer.gz" layer.v1.tar+gzip)
	cat >"$work/config" <<-END
		{"created":"$created","architecture":"$architecture","os":"linux","config":{"Entrypoint":["/usr/bin/vcc"],"Cmd":["run","--config","/etc/vcc/policy.toml"],"Labels":{$labels}},"rootfs":{"type":"layers","diff_ids":["sha256:$unpacked"]},"history":[{"created":"$created","comment":"vcc $version"}]}
	END
	config=$(keep "$work/config" config.v1+json)
	cat >"$work/manifest" <<-END
		{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":$config},"layers":[$layer}],"annotations":{$labels}}
	END
	manifest=$(keep "$work/manifest" manifest.v1+json)
	manifests="$manifests${manifests:+,}$manifest,\"platform\":{\"architecture\":\"$architecture\",\"os\":\"linux\"}}"
done
cat >"$work/index" <<-END
	{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[$manifests],"annotations":{$labels}}
END
index=$(keep "$work/index" index.v1+json)
cat >"$layout/index.json" <<-END
	{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[$index,"annotations":{"org.opencontainers.image.ref.name":"$version"}}]}
END
printf '{"imageLayoutVersion":"1.0.0"}\n' >"$layout/oci-layout"
pack "$archive" "$layout"
