//! What the account of the agents may do: what they need, on their own node, and nothing else.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use vcc_testing::eventually;
use vcc_testing::kubernetes::Cluster;

use crate::chart::packaging;

/// A pod of the DaemonSet on node-a, and what others have.
const OBJECTS: &str = r#"
apiVersion: v1
kind: Node
metadata: { name: node-a }
---
apiVersion: v1
kind: Pod
metadata: { name: agent, namespace: vcc }
spec:
  nodeName: node-a
  serviceAccountName: vcc
  containers: [{ name: vcc, image: none }]
---
apiVersion: v1
kind: Secret
metadata: { name: key, namespace: vcc }
---
apiVersion: vcc.internal/v1alpha1
kind: VccNode
metadata: { name: node-b }
"#;

struct Agents {
    cluster: Cluster,
    /// Of the agent on node-a.
    kubeconfig: PathBuf,
}

impl Agents {
    /// Those that other tests use at the same time, if any do.
    #[track_caller]
    fn installed() -> Option<Arc<Self>> {
        static SHARED: Mutex<Weak<Agents>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(agents) = shared.upgrade() {
            return Some(agents);
        }
        let agents = Arc::new(Self::install()?);
        *shared = Arc::downgrade(&agents);
        Some(agents)
    }

    #[track_caller]
    fn install() -> Option<Self> {
        let cluster = Cluster::start()?;
        let install = ["install", "vcc", "chart", "--namespace", "vcc", "--create-namespace"];
        cluster.helm().run(packaging(), &install).unwrap_or_else(|said| panic!("helm: {said}"));
        cluster.apply(OBJECTS);
        let token = cluster.pod_token("vcc", "vcc", "agent");
        let kubeconfig = cluster.kubeconfig_with_token("agent", &token);
        let agents = Self { cluster, kubeconfig };
        eventually("the server holds agents to their nodes", || {
            agents.apply_dry(&node("node-b")).is_err() && agents.apply_dry(&node("node-a")).is_ok()
        });
        Some(agents)
    }

    fn kubectl(&self, arguments: &[&str]) -> Result<String, String> {
        self.cluster.try_kubectl(&self.kubeconfig, arguments, "")
    }

    fn apply(&self, manifest: &str) -> Result<String, String> {
        let arguments = ["apply", "--server-side", "--validate=false", "-f", "-"];
        self.cluster.try_kubectl(&self.kubeconfig, &arguments, manifest)
    }

    /// Judged like others, and not done.
    fn apply_dry(&self, manifest: &str) -> Result<String, String> {
        let arguments =
            ["apply", "--server-side", "--validate=false", "--dry-run=server", "-f", "-"];
        self.cluster.try_kubectl(&self.kubeconfig, &arguments, manifest)
    }

    #[track_caller]
    fn may(&self, arguments: &[&str]) {
        self.kubectl(arguments).unwrap_or_else(|said| panic!("{}: {said}", arguments.join(" ")));
    }

    #[track_caller]
    fn may_not(&self, arguments: &[&str]) {
        match self.kubectl(arguments) {
            Ok(said) => panic!("{}: granted: {said}", arguments.join(" ")),
            Err(said) => {
                assert!(said.contains("Forbidden") || said.contains("forbidden"), "{said}")
            }
        }
    }
}

fn node(name: &str) -> String {
    format!("apiVersion: vcc.internal/v1alpha1\nkind: VccNode\nmetadata: {{ name: {name} }}\n")
}

fn lease(name: &str, namespace: &str) -> String {
    let names = format!("{{ name: {name}, namespace: {namespace} }}");
    format!("apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {names}\n")
}

const STATUS: &str = r#"{"status":{}}"#;
const LABEL: &str = r#"{"metadata":{"labels":{"a":"b"}}}"#;

#[test]
fn an_agent_writes_the_status_of_its_own_node_alone() {
    let Some(agents) = Agents::installed() else { return };
    let patch = |name, subresource: &[&'static str]| {
        let patch = if subresource.is_empty() { LABEL } else { STATUS };
        [&["patch", "vccnode", name, "--type=merge", "-p", patch], subresource].concat()
    };
    let status = ["--subresource=status"];
    agents.apply(&node("node-a")).expect("its own");
    agents.may(&patch("node-a", &[]));
    agents.may(&patch("node-a", &status));

    let said = agents.apply(&node("node-c")).expect_err("another's");
    assert!(said.contains("the token is of the node `node-a`"), "{said}");
    agents.may_not(&patch("node-b", &[]));
    agents.may_not(&patch("node-b", &status));
    agents.may_not(&["delete", "vccnode", "node-a"]);

    // A token of the account that is bound to no pod is no node's.
    let token = agents.cluster.kubectl(&["create", "token", "vcc", "--namespace", "vcc"]);
    let unbound = agents.cluster.kubeconfig_with_token("unbound", token.trim_end());
    let arguments = patch("node-a", &status);
    let said = agents.cluster.try_kubectl(&unbound, &arguments, "").expect_err("no node's");
    assert!(said.contains("the token is of the node ``"), "{said}");

    // Others are as free as their roles.
    agents.cluster.kubectl(&patch("node-b", &status));
}

#[test]
fn an_agent_reads_pods_and_policies_and_no_more() {
    let Some(agents) = Agents::installed() else { return };
    for what in ["pods", "namespaces", "vccpolicies", "vccnodes"] {
        agents.may(&["get", what, "--all-namespaces"]);
    }
    agents.may(&["get", "node", "node-a"]);
    for what in ["secrets", "configmaps", "services", "nodes", "serviceaccounts", "clusterroles"] {
        agents.may_not(&["get", what, "--all-namespaces"]);
    }
    agents.may_not(&["get", "secret", "key", "--namespace", "vcc"]);

    let patch =
        |what, name, patch| ["patch", what, name, "--namespace=vcc", "--type=merge", "-p", patch];
    agents.may_not(&patch("pod", "agent", LABEL));
    agents.may_not(&["delete", "pod", "agent", "--namespace", "vcc"]);
    agents.may_not(&["create", "token", "vcc", "--namespace", "vcc"]);
    agents.may_not(&patch("node", "node-a", LABEL));
    agents.may_not(&patch("vccpolicy", "everything", r#"{"spec":{"priority":1}}"#));
    agents.may_not(&["delete", "vccpolicy", "everything"]);
    let status = ["--subresource=status"];
    agents.may(&[&patch("vccpolicy", "everything", STATUS)[..], &status].concat());
}

#[test]
fn an_agent_holds_the_lease_of_its_namespace() {
    let Some(agents) = Agents::installed() else { return };
    agents.kubectl(&["get", "lease", "vcc-summary", "--namespace", "vcc"]).expect_err("not yet");
    let create = |lease: &str| {
        let arguments = ["create", "--validate=false", "-f", "-"];
        agents.cluster.try_kubectl(&agents.kubeconfig, &arguments, lease)
    };
    create(&lease("vcc-summary", "vcc")).expect("created");
    agents.may(&["get", "lease", "vcc-summary", "--namespace", "vcc"]);
    agents.may(&["patch", "lease", "vcc-summary", "--namespace=vcc", "--type=merge", "-p", LABEL]);

    agents.may_not(&["get", "leases", "--namespace", "vcc"]);
    agents.may_not(&["delete", "lease", "vcc-summary", "--namespace", "vcc"]);
    let said = create(&lease("vcc-summary", "default")).expect_err("another namespace");
    assert!(said.contains("forbidden"), "{said}");
    agents.cluster.apply(&lease("another", "vcc"));
    agents.may_not(&["patch", "lease", "another", "--namespace=vcc", "--type=merge", "-p", LABEL]);
}
