#!/bin/bash
# Validates packaging/kubernetes by Kubernetes' own schemas, and its policy by vcc: `kubernetes.sh
# BINARY`. Exit code 77 means skipped, for the reason in the last line. What a real API server reports about
# the chart is a test of vcc-testing.
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
agent=packaging/kubernetes/agent.yaml
chart=packaging/kubernetes/chart

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

# valid FILE: for the oldest release with `appArmorProfile`, and for the validator's newest. Of objects
# that others define it knows nothing.
valid() {
	"$place/bin/python" - "$1" "$work/known.yaml" <<-'END'
		import sys, yaml
		others = ("vcc.internal/", "monitoring.coreos.com/")
		with open(sys.argv[1]) as manifest:
		    parts = [part for part in yaml.safe_load_all(manifest) if part]
		with open(sys.argv[2], "w") as file:
		    yaml.safe_dump_all([part for part in parts if not part["apiVersion"].startswith(others)], file)
	END
	for release in 1.30 1.37; do
		said=$(validate "$release" "$work/known.yaml") || fail "$1 is invalid for Kubernetes $release: $said"
	done
}
valid "$manifest"
valid "$agent"
valid packaging/kubernetes/crds.yaml
# The validator does find errors.
sed 's/hostNetwork:/hostNetworks:/' "$manifest" >"$work/wrong.yaml"
! validate 1.37 "$work/wrong.yaml" >/dev/null || fail 'the validator accepts an invalid manifest'

# What is made of other sources is up to date, and other values are as valid.
status=0
scripts/kubernetes-manifests.sh --check "$vcc" >"$work/said" 2>&1 || status=$?
case $status in
0)
	helm=$(scripts/kubernetes-tools.sh --cached)/helm
	for values in metrics.listen=off,cni.name=cilium \
		metrics.listen=0.0.0.0:9644,metrics.annotations=true,metrics.podMonitor.enabled=true; do
		HOME=$work "$helm" template vcc "$chart" --namespace vcc --set "$values" \
			>"$work/rendered.yaml" 2>"$work/said" || fail "helm template: $(cat "$work/said")"
		valid "$work/rendered.yaml"
		# Behind Cilium's programs, ports see nothing of their pods (docs/packaging.md).
		[[ $values != *cilium* ]] || grep -q '^ *order: first$' "$work/rendered.yaml" ||
			fail 'with Cilium, the policy of all pods is not first at their devices'
	done
	;;
77) echo "kubernetes: $(cat "$work/said"), continuing without" ;;
*) fail "$(cat "$work/said")" ;;
esac

# Both DaemonSets run vcc in the same way, but for where the policy comes from.
"$place/bin/python" - "$manifest" "$agent" <<-'END' || fail "$manifest and $agent differ"
	import sys, yaml
	def pods(path):
	    with open(path) as manifest:
	        daemonset, = (part for part in yaml.safe_load_all(manifest) if part["kind"] == "DaemonSet")
	    spec = daemonset["spec"]["template"]["spec"]
	    own = {"policy", "token", "state", "cni-cache", "NODE_NAME", "POD_NAMESPACE", "STATE_DIRECTORY"}
	    container, = spec["containers"]
	    for where, key in ((spec, "volumes"), (container, "volumeMounts"), (container, "env")):
	        where[key] = [part for part in where[key] if part["name"] not in own]
	    del container["args"]
	    return {"spec": spec, "update": daemonset["spec"]["updateStrategy"]}
	plain, agent = map(pods, sys.argv[1:])
	for key in ("spec", "update"):
	    if plain[key] != agent[key]:
	        sys.exit(f"{key}:\n{yaml.safe_dump(plain[key])}\n---\n{yaml.safe_dump(agent[key])}")
END

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
grep -q "^version: ${version#vcc }\$" "$chart/Chart.yaml" || fail 'the chart is of another version'
grep -q "^appVersion: \"${version#vcc }\"\$" "$chart/Chart.yaml" || fail "the chart's image is another version's"
