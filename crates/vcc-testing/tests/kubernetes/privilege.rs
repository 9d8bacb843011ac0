//! What the account of the agents may do: what they need, on their own node, and nothing else.

use std::path::{Path, PathBuf};
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
        cluster.helm().run(packaging(), &install).unwrap_or_else(|output| panic!("helm: {output}"));
        cluster.apply(OBJECTS);
        let token = cluster.pod_token("vcc", "vcc", "agent");
        let kubeconfig = cluster.kubeconfig_with_token("agent", &token);
        let agents = Self { cluster, kubeconfig };
        eventually("the server holds agents to their nodes", || {
            agents.create(&node("node-c"), &["--dry-run=server"]).is_err()
                && agents.create(&node("node-a"), &["--dry-run=server"]).is_ok()
        });
        Some(agents)
    }

    fn kubectl(&self, arguments: &[&str]) -> Result<String, String> {
        self.cluster.try_kubectl(&self.kubeconfig, arguments, "")
    }

    /// One request, and none to read before it.
    fn create(&self, manifest: &str, options: &[&str]) -> Result<String, String> {
        let arguments = [&["create", "--validate=false", "-f", "-"], options].concat();
        self.cluster.try_kubectl(&self.kubeconfig, &arguments, manifest)
    }

    /// As [`Self::create`], as a patch.
    fn apply(&self, manifest: &str, options: &[&str]) -> Result<String, String> {
        self.apply_as(&self.kubeconfig, manifest, options)
    }

    fn apply_as(
        &self,
        kubeconfig: &Path,
        manifest: &str,
        options: &[&str],
    ) -> Result<String, String> {
        let apply = ["apply", "--server-side", "--force-conflicts", "--validate=false", "-f", "-"];
        self.cluster.try_kubectl(kubeconfig, &[&apply[..], options].concat(), manifest)
    }

    #[track_caller]
    fn may(&self, arguments: &[&str]) {
        self.kubectl(arguments)
            .unwrap_or_else(|output| panic!("{}: {output}", arguments.join(" ")));
    }

    #[track_caller]
    fn may_not(&self, arguments: &[&str]) {
        match self.kubectl(arguments) {
            Ok(output) => panic!("{}: granted: {output}", arguments.join(" ")),
            Err(output) => {
                assert!(output.contains("Forbidden") || output.contains("forbidden"), "{output}")
            }
        }
    }
}

/// What of an object is written.
const ITS_STATUS: &[&str] = &["--subresource=status"];

#[track_caller]
fn refused(result: Result<String, String>) -> String {
    let output = result.expect_err("refused");
    assert!(output.contains("Forbidden") || output.contains("forbidden"), "{output}");
    output
}

fn node_status(name: &str) -> String {
    format!("{}status: {{ edition: e }}\n", node(name))
}

fn policy(name: &str, rest: &str) -> String {
    let kind = "apiVersion: vcc.internal/v1alpha1\nkind: VccPolicy\n";
    format!("{kind}metadata: {{ name: {name} }}\n{rest}\n")
}

fn node(name: &str) -> String {
    format!("apiVersion: vcc.internal/v1alpha1\nkind: VccNode\nmetadata: {{ name: {name} }}\n")
}

fn lease(name: &str, namespace: &str) -> String {
    let names = format!("{{ name: {name}, namespace: {namespace} }}");
    format!("apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {names}\n")
}

const LABEL: &str = r#"{"metadata":{"labels":{"a":"b"}}}"#;

#[test]
fn an_agent_writes_the_status_of_its_own_node_alone() {
    let Some(agents) = Agents::installed() else { return };
    agents.create(&node("node-a"), &[]).expect("its own");
    agents.apply(&node_status("node-a"), ITS_STATUS).expect("its own");

    let output = refused(agents.create(&node("node-c"), &[]));
    assert!(output.contains("the token is of the node `node-a`"), "{output}");
    let output = refused(agents.apply(&node_status("node-b"), ITS_STATUS));
    assert!(output.contains("the token is of the node `node-a`"), "{output}");
    for name in ["node-a", "node-b"] {
        refused(agents.apply(&node(name), &[]));
    }
    agents.may_not(&["delete", "vccnode", "node-a"]);

    // A token of the account that is bound to no pod is no node's.
    let token = agents.cluster.kubectl(&["create", "token", "vcc", "--namespace", "vcc"]);
    let unbound = agents.cluster.kubeconfig_with_token("unbound", token.trim_end());
    let output = refused(agents.apply_as(&unbound, &node_status("node-a"), ITS_STATUS));
    assert!(output.contains("the token is of the node ``"), "{output}");

    // Others are as free as their roles.
    agents.cluster.apply_status(&node_status("node-b"));
}

#[test]
fn an_agent_reads_pods_and_policies_and_no_more() {
    let Some(agents) = Agents::installed() else { return };
    for what in ["pods", "namespaces", "vccpolicies", "vccnodes"] {
        agents.may(&["get", what, "--all-namespaces"]);
    }
    agents.may(&["get", "node", "node-a"]);
    for what in
        ["secrets", "configmaps", "services", "nodes", "serviceaccounts", "clusterroles", "events"]
    {
        agents.may_not(&["get", what, "--all-namespaces"]);
    }
    // What it lists and watches, it has no other use for.
    agents.may_not(&["get", "pod", "agent", "--namespace", "vcc"]);
    agents.may_not(&["get", "vccpolicy", "everything"]);
    agents.may_not(&["get", "secret", "key", "--namespace", "vcc"]);

    let patch =
        |what, name, patch| ["patch", what, name, "--namespace=vcc", "--type=merge", "-p", patch];
    agents.may_not(&patch("pod", "agent", LABEL));
    agents.may_not(&["delete", "pod", "agent", "--namespace", "vcc"]);
    agents.may_not(&["create", "token", "vcc", "--namespace", "vcc"]);
    agents.may_not(&patch("node", "node-a", LABEL));
    refused(agents.apply(&policy("everything", "spec: { priority: 1 }"), &[]));
    refused(agents.create(&policy("another", "spec: { priority: 1 }"), &[]));
    agents.may_not(&["delete", "vccpolicy", "everything"]);
    let status = policy("everything", "status: { nodes: 1 }");
    agents.apply(&status, ITS_STATUS).expect("a summary");
}

#[test]
fn an_agent_holds_the_lease_of_its_namespace() {
    let Some(agents) = Agents::installed() else { return };
    agents.kubectl(&["get", "lease", "vcc-summary", "--namespace", "vcc"]).expect_err("not yet");
    let create = |lease: &str| agents.create(lease, &[]);
    let replace = |lease: &str| {
        let arguments = ["replace", "--validate=false", "-f", "-"];
        agents.cluster.try_kubectl(&agents.kubeconfig, &arguments, lease)
    };
    create(&lease("vcc-summary", "vcc")).expect("created");
    agents.may(&["get", "lease", "vcc-summary", "--namespace", "vcc"]);
    replace(&lease("vcc-summary", "vcc")).expect("renewed");

    agents.may_not(&["get", "leases", "--namespace", "vcc"]);
    agents.may_not(&["delete", "lease", "vcc-summary", "--namespace", "vcc"]);
    let output = create(&lease("vcc-summary", "default")).expect_err("another namespace");
    assert!(output.contains("forbidden"), "{output}");
    agents.cluster.apply(&lease("another", "vcc"));
    refused(replace(&lease("another", "vcc")));
}
