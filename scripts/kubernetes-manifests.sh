#!/bin/sh
# Writes what packaging/kubernetes has of other sources: crds.yaml, which is the command's, and agent.yaml,
# which is the chart's with its default values. `kubernetes-manifests.sh [--check] BINARY`; with --check it
# names what is stale and fails. Exit code 77 means that helm is missing, for the reason in the last line.
set -eu
cd "$(dirname "$0")/.."
check=
if [ "${1-}" = --check ]; then
	check=1
	shift
fi
vcc=$(realpath "${1:?no binary given: usage: kubernetes-manifests.sh [--check] BINARY}")
place=packaging/kubernetes

fail() {
	echo "kubernetes-manifests: $*" >&2
	exit 1
}

tools=$(scripts/kubernetes-tools.sh --cached) || {
	echo 'helm is missing: scripts/kubernetes-tools.sh builds it'
	exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

put() {
	if [ -z "$check" ]; then
		cp "$work/$1" "$place/$1"
	else
		diff -u "$place/$1" "$work/$1" >&2 ||
			fail "$place/$1 is stale: scripts/kubernetes-manifests.sh BINARY writes it"
	fi
}

"$vcc" generate crds >"$work/crds.yaml" || fail 'vcc generate crds'
put crds.yaml

cat >"$work/agent.yaml" <<'END'
# vcc on every node of a cluster, under the policies that the cluster has as objects: the chart beside
# this file, with its default values. See docs/packaging.md.
#
#   kubectl apply --server-side -f crds.yaml
#   kubectl apply --server-side -f agent.yaml
#
# Written by scripts/kubernetes-manifests.sh.
END
HOME=$work "$tools/helm" template vcc "$place/chart" --namespace vcc --set createNamespace=true \
	>>"$work/agent.yaml" 2>"$work/log" || fail "helm template: $(cat "$work/log")"
put agent.yaml
