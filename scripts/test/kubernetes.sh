#!/bin/bash
# Validates packaging/kubernetes by Kubernetes' own schemas, and its policy by vcc: `kubernetes.sh
# BINARY`. Exit code 77 means skipped, for the reason in the last line.
set -eu
cd "$(dirname "$0")/../.."

fail() {
	echo "kubernetes: $*" >&2
	exit 1
}

skip() {
	echo "$*"
	exit 77
}

vcc=$(realpath "${1:?no binary given: usage: kubernetes.sh BINARY}")
manifest=packaging/kubernetes/daemonset.yaml

# Contains the schemas of all releases. Cached, because it is a download of 20 MB.
validator=kubernetes-validate==1.37.0
place=${XDG_CACHE_HOME:-$HOME/.cache}/vcc/$validator
if [ ! -e "$place/complete" ]; then
	rm -rf "$place"
	python3 -m venv "$place" >/dev/null 2>&1 || skip 'python3-venv is not installed'
	"$place/bin/pip" install --quiet --disable-pip-version-check "$validator" >/dev/null 2>&1 ||
		skip "$validator cannot be installed: check the network"
	touch "$place/complete"
fi
validate() {
	"$place/bin/kubernetes-validate" --strict --quiet -k "$1" "$2" 2>&1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The oldest release with `appArmorProfile`, and the validator's newest.
for release in 1.30 1.37; do
	said=$(validate "$release" "$manifest") || fail "invalid for Kubernetes $release: $said"
done
# The validator does find errors.
sed 's/hostNetwork:/hostNetworks:/' "$manifest" >"$work/wrong.yaml"
! validate 1.37 "$work/wrong.yaml" >/dev/null || fail 'the validator accepts an invalid manifest'

# To Kubernetes the policy is text; vcc checks it.
"$place/bin/python" - "$manifest" "$work/policy.toml" <<-'END'
	import sys, yaml
	with open(sys.argv[1]) as manifest:
	    parts = list(yaml.safe_load_all(manifest))
	policy, = (part["data"]["policy.toml"] for part in parts if part["kind"] == "ConfigMap")
	with open(sys.argv[2], "w") as file:
	    file.write(policy)
END
"$vcc" policy check "$work/policy.toml"
"$vcc" explain 10.0.0.1:40000 10.0.0.2:80 --device lxc0123 --file "$work/policy.toml" >"$work/said"
grep -q 'nothing is changed' "$work/said" || fail "the default policy enforces: $(cat "$work/said")"

# vcc works with the capabilities of the manifest, without being privileged.
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null && "$vcc" doctor >/dev/null; then
	capabilities=$(sed -n 's/^ *add: \[\(.*\)\]$/\1/p' "$manifest" | tr -d '" ' | tr '[:upper:]' '[:lower:]')
	[ -n "$capabilities" ] || fail 'the manifest adds no capabilities'
	# shellcheck disable=SC2016 # for the shell within
	unshare --mount --net --propagation private sh -euc '
		mount -t sysfs sysfs /sys
		mount -t bpf bpf /sys/fs/bpf
		ip link add veth-pod type veth peer name eth-pod
		limited() {
			setpriv --no-new-privs --inh-caps=-all --bounding-set="-all,+$(echo "$2" | sed s/,/,+/g)" \
				sh -euc "$1 attach veth-pod --emit; timeout --foreground --preserve-status -s INT 2 $1 emit veth-pod"
			"$1" detach veth-pod
		}
		limited "$@"
	' sh "$vcc" "$capabilities" >"$work/said" 2>&1 || fail "with $capabilities: $(cat "$work/said")"
else
	echo 'kubernetes: attaching needs root, continuing without'
fi

version=$("$vcc" --version)
grep -q "image: vcc:${version#vcc }\$" "$manifest" || fail "the manifest's image is not vcc:${version#vcc }"
grep -q "vcc:${version#vcc } " packaging/container/Dockerfile || fail 'the Dockerfile names another version'
