#!/bin/bash
# packaging/kubernetes against Kubernetes' own schemas, and the policy in it against vcc:
# `kubernetes.sh BINARY`. Ends with 77 where it cannot run, and says why in its last line.
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

vcc=$(realpath "${1:?which binary?}")
manifest=packaging/kubernetes/daemonset.yaml

# The schemas of all releases come with this; it is kept, for it is some 20 MB to get.
validator=kubernetes-validate==1.37.0
place=${XDG_CACHE_HOME:-$HOME/.cache}/vcc/$validator
if [ ! -e "$place/complete" ]; then
	rm -rf "$place"
	python3 -m venv "$place" >/dev/null 2>&1 || skip 'no python3 with venv'
	"$place/bin/pip" install --quiet --disable-pip-version-check "$validator" >/dev/null 2>&1 ||
		skip "$validator cannot be installed: is there a network?"
	touch "$place/complete"
fi
validate() {
	"$place/bin/kubernetes-validate" --strict --quiet -k "$1" "$2" 2>&1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The oldest release that knows `appArmorProfile`, and the newest that the validator does.
for release in 1.30 1.37; do
	said=$(validate "$release" "$manifest") || fail "not for Kubernetes $release: $said"
done
# It would have found something.
sed 's/hostNetwork:/hostNetworks:/' "$manifest" >"$work/wrong.yaml"
! validate 1.37 "$work/wrong.yaml" >/dev/null || fail 'the validator finds nothing'

# A policy is text to Kubernetes; whether it is one, vcc knows.
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

# With what the manifest asks for instead of being privileged, vcc does its work.
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null && "$vcc" doctor >/dev/null; then
	capabilities=$(sed -n 's/^ *add: \[\(.*\)\]$/\1/p' "$manifest" | tr -d '" ' | tr '[:upper:]' '[:lower:]')
	[ -n "$capabilities" ] || fail 'no capabilities are found'
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
	echo 'kubernetes: attaching needs root, goes on without'
fi

version=$("$vcc" --version)
grep -q "image: vcc:${version#vcc }\$" "$manifest" || fail "the image is not of ${version#vcc }"
grep -q "vcc:${version#vcc } " packaging/container/Dockerfile || fail 'the Dockerfile names another version'
