//! The chart: which values it takes, and whether the API server takes what it makes of them.

use std::fs;
use std::path::Path;

use vcc_testing::kubernetes::{Cluster, Helm};

/// The directory of the chart.
pub fn packaging() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/kubernetes"))
}

/// Values with which people install it.
const VALUES: [&[&str]; 8] = [
    &[],
    &["cni.name=calico", "policy.mode=enforce", "policy.underlay=dctcp"],
    &["cni.name=cilium", "policy.create=false", "ownNodeOnly=false"],
    &["cni.name=flannel", "cni.cache=/run/cni", "metrics.listen=off"],
    &["cni.name=kindnet", "metrics.listen=[::1]:9644", "priorityClassName="],
    &["metrics.listen=0.0.0.0:9645", "metrics.annotations=true", "podLabels.team=net"],
    &["metrics.listen=[::]:9644", "metrics.podMonitor.enabled=true", "podAnnotations.a=b"],
    &[
        "image.repository=registry.example/vcc",
        "image.pullSecrets[0].name=registry",
        "tolerations=null",
    ],
];

fn with_values<'a>(arguments: &[&'a str], values: &[&'a str]) -> Vec<&'a str> {
    let values = values.iter().flat_map(|value| ["--set", value]);
    arguments.iter().copied().chain(values).collect()
}

fn rendered(helm: &Helm, values: &[&str]) -> Result<String, String> {
    let template = ["template", "vcc", "chart", "--namespace", "vcc"];
    helm.run(packaging(), &with_values(&template, values))
}

#[test]
fn lint_has_nothing_to_say() {
    let Some(helm) = Helm::find() else { return };
    for values in VALUES {
        let output = helm.run(packaging(), &with_values(&["lint", "--strict", "chart"], values));
        output.unwrap_or_else(|output| panic!("{values:?}: {output}"));
    }
}

#[test]
fn a_wrong_value_is_named() {
    let Some(helm) = Helm::find() else { return };
    let wrong: [(&[&str], &[&str]); 8] = [
        (&["cni.name=weave"], &["/cni/name", "'calico', 'cilium', 'flannel', 'kindnet', 'other'"]),
        (&["policy.mode=enforced"], &["/policy/mode", "'shadow', 'enforce'"]),
        (&["policy.maxFlows=0"], &["/policy/maxFlows", "minimum"]),
        (&["metrics.listen=9644"], &["/metrics/listen"]),
        (&["metrics.listn=off"], &["/metrics", "'listn' not allowed"]),
        (&["updateStrategy.type=Recreate"], &["/updateStrategy/type", "'OnDelete'"]),
        (&["metrics.annotations=true"], &["metrics.listen: 127.0.0.1:9644 is for the node alone"]),
        (
            &["metrics.podMonitor.enabled=true", "metrics.listen=off"],
            &["metrics.listen: off is for the node alone", "listen at 0.0.0.0:9644"],
        ),
    ];
    for (values, expected) in wrong {
        let output = rendered(&helm, values).expect_err("a wrong value");
        for part in expected {
            assert!(output.contains(part), "{values:?}: {part}: {output}");
        }
    }
}

#[test]
fn nothing_listens_on_the_network_unasked() {
    let Some(helm) = Helm::find() else { return };
    let manifests = rendered(&helm, &[]).expect("manifests");
    assert!(manifests.contains(r#""--listen", "127.0.0.1:9644""#), "{manifests}");
    assert!(!manifests.contains("containerPort"), "{manifests}");
    let open = rendered(&helm, VALUES[6]).expect("manifests");
    assert!(open.contains("containerPort: 9644"), "{open}");
    // Where the server listens at all addresses, the node's own are among them.
    assert!(open.contains(r#"host: "::1""#), "{open}");
}

/// The lease is where the role for it is.
#[test]
fn the_agents_know_their_namespace_under_any_name() {
    let Some(helm) = Helm::find() else { return };
    let template = ["template", "vcc", "chart", "--namespace", "net-system"];
    let manifests = helm.run(packaging(), &template).expect("manifests");
    let arguments: String = manifests
        .split_once("- name: POD_NAMESPACE")
        .unwrap_or_else(|| panic!("the agents have no such option: {manifests}"))
        .1
        .split_whitespace()
        .take(4)
        .collect();
    assert_eq!(arguments, "valueFrom:fieldRef:fieldPath:metadata.namespace");
    assert!(!manifests.contains("namespace: vcc\n"), "{manifests}");
    let account = "system:serviceaccount:net-system:vcc";
    assert!(manifests.contains(account), "{manifests}");
}

#[test]
fn the_api_server_takes_the_manifest_and_what_each_set_of_values_makes() {
    let Some(cluster) = Cluster::start() else { return };
    let established = ["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"];
    let file = |name| fs::read_to_string(packaging().join(name)).expect(name);
    cluster.apply(&file("crds.yaml"));
    cluster.apply(POD_MONITORS);
    cluster.kubectl(&established);
    cluster.apply(&file("agent.yaml"));
    let helm = cluster.helm();
    for values in VALUES {
        cluster.apply(&rendered(&helm, values).expect("manifests"));
    }
}

#[test]
fn it_is_installed_upgraded_and_removed() {
    let Some(cluster) = Cluster::start() else { return };
    let helm = cluster.helm();
    let run = |arguments: &[&str]| {
        let namespace = ["--namespace", "vcc"];
        let output = helm.run(packaging(), &[arguments, &namespace].concat());
        output.unwrap_or_else(|output| panic!("helm {}: {output}", arguments.join(" ")))
    };
    let notes = run(&["install", "vcc", "chart", "--create-namespace", "--set", "cni.name=cilium"]);
    assert!(notes.contains("bpf.hostLegacyRouting=true"), "{notes}");
    assert!(notes.contains("`everything` watches all pods and changes nothing"), "{notes}");
    let mode = ["get", "vccpolicy", "everything", "-o", "jsonpath={.spec.default.mode}"];
    assert_eq!(cluster.kubectl(&mode), "shadow");

    run(&["upgrade", "vcc", "chart", "--set", "policy.mode=enforce"]);
    assert_eq!(cluster.kubectl(&mode), "enforce");

    run(&["uninstall", "vcc"]);
    let kinds =
        "daemonsets,clusterroles,clusterrolebindings,validatingadmissionpolicies,vccpolicies";
    let left = cluster.kubectl(&["get", kinds, "--namespace", "vcc", "-o", "name"]);
    let ours: Vec<&str> = left.lines().filter(|name| name.contains("/vcc")).collect();
    assert!(ours.is_empty(), "{ours:?}");
    // With the definitions, all policies would go.
    cluster.kubectl(&["get", "crd", "vccpolicies.vcc.internal", "vccnodes.vcc.internal"]);
}

/// What the Prometheus operator defines of its resource, as far as it takes any.
const POD_MONITORS: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: podmonitors.monitoring.coreos.com }
spec:
  group: monitoring.coreos.com
  names: { kind: PodMonitor, plural: podmonitors, singular: podmonitor }
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema: { type: object, x-kubernetes-preserve-unknown-fields: true }
"#;
