#!/bin/sh
# Builds Kubernetes' API server, etcd, kubectl and helm for tests unless they are cached, and prints
# their directory.
#
#   kubernetes-tools.sh [--cached] [CACHE]    cache directory; default: $XDG_CACHE_HOME/vcc or ~/.cache/vcc
#
# With --cached, it fails unless they are there. Exit code 77 means that they cannot be built here, for
# the reason in the last line.
#
# They are one program, built of Go modules by the go.mod, go.sum and main.go of
# crates/vcc-testing/kubernetes. A change of any of these builds another. docs/testing.md says what a
# build takes.
set -eu
only_cached=
if [ "${1-}" = --cached ]; then
	only_cached=1
	shift
fi
here=$(cd "$(dirname "$0")/.." && pwd)
module=$here/crates/vcc-testing/kubernetes
cache=${1:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/vcc}

fail() {
	echo "Kubernetes' tools: $*" >&2
	exit 1
}

skip() {
	echo "Kubernetes' tools: $*" >&2
	exit 77
}

recipe=$(cat "$here/scripts/kubernetes-tools.sh" "$module/go.mod" "$module/go.sum" "$module/main.go" |
	sha256sum | cut -c 1-12)
tools=$cache/kubernetes-tools-$recipe
if [ -d "$tools" ]; then
	echo "$tools"
	exit 0
fi
[ -z "$only_cached" ] || fail "they are not in $cache"

# An older Go would download a newer one.
export GOTOOLCHAIN=local
command -v go >/dev/null || skip 'Go is not installed'
wanted=$(sed -n 's/^go //p' "$module/go.mod")
found=$(go env GOVERSION)
[ "$(printf '%s\n' "${found#go}" "$wanted" | sort -V | head -n 1)" = "$wanted" ] ||
	skip "they need Go $wanted, and $found is installed"

mkdir -p "$cache" || fail "cannot create $cache"
exec 9>"$cache/kubernetes-tools.lock"
flock 9 || fail "cannot lock $cache/kubernetes-tools.lock"
if [ -d "$tools" ]; then
	echo "$tools"
	exit 0
fi
rm -rf "$cache"/kubernetes-tools-build.*
work=$(mktemp -d "$cache/kubernetes-tools-build.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cd "$module"
go mod download >"$work/log" 2>&1 ||
	skip "the modules cannot be downloaded, check the network: $(tail -n 1 "$work/log")"
echo "Kubernetes' tools: building, some minutes" >&2

# What is compiled for them is of no use to others: the cache goes with the build. What debuggers want would
# take time, and inlining takes a quarter of it.
version=$(sed -n 's,^.*k8s.io/kubernetes \(v1.*\)$,\1,p' go.mod)
mkdir "$work/tools"
GOCACHE=$work/objects CGO_ENABLED=0 GOFLAGS=-mod=readonly go build -trimpath -gcflags="all=-dwarf=false -l" \
	-ldflags="-s -w -X k8s.io/component-base/version.gitVersion=$version" \
	-o "$work/tools/kubernetes" . >>"$work/log" 2>&1 || fail "go build: $(tail -n 5 "$work/log")"
for name in etcd helm kube-apiserver kubectl signing-key; do
	ln -s kubernetes "$work/tools/$name"
done
mv "$work/tools" "$tools"
echo "$tools"
