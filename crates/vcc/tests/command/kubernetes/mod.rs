//! `vcc run --kubernetes`, with Kubernetes' own API server. Network namespaces play pods.

mod choices;
mod devices;
mod floods;
mod grants;
mod outage;
mod policies;
mod refusals;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use vcc_testing::kubernetes::Cluster;
use vcc_testing::{ip, on_a_host};

use crate::{CommandOutput, command, vcc};

const NODE: &str = "worker-1";

/// Runs a test's `work` on a host that is the node of a cluster which knows vcc's resources.
#[track_caller]
fn on_a_node(work: impl FnOnce(&Cluster) + Send) {
    on_a_host(|| {
        ip("link set lo up");
        let Some(cluster) = Cluster::start() else { return };
        cluster.apply(&vcc("generate crds").well());
        cluster.kubectl(&["wait", "--for=condition=Established", "crd", "--all"]);
        // Of the agents, and of the lease for their summary.
        cluster.apply(&namespace("vcc", json!({})));
        cluster.apply(&format!("{{ apiVersion: v1, kind: Node, metadata: {{ name: {NODE} }} }}"));
        work(&cluster);
    });
}

/// The agent's files and its process, which is killed at the end.
struct Agent {
    directory: TempDir,
    kubeconfig: PathBuf,
    child: Option<Child>,
}

impl Agent {
    fn start(kubeconfig: &Path) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(directory.path().join("run")).expect("a directory");
        let mut agent = Self { directory, kubeconfig: kubeconfig.to_owned(), child: None };
        agent.run();
        agent
    }

    fn run(&mut self) {
        let mut run = self.command();
        run.args(["run", "--kubernetes", "--node", NODE, "--listen", "127.0.0.1:0"]);
        run.arg("--kubeconfig").arg(&self.kubeconfig).arg("--cni-cache").arg(self.cni_cache());
        let log = std::fs::File::create(self.directory.path().join("log")).expect("a file");
        self.child = Some(run.stderr(Stdio::from(log)).spawn().expect("the command"));
    }

    fn cni_cache(&self) -> PathBuf {
        self.directory.path().join("cni")
    }

    fn command(&self) -> Command {
        let mut command = command();
        command.env("RUNTIME_DIRECTORY", self.directory.path().join("run"));
        command.env("STATE_DIRECTORY", self.directory.path().join("state"));
        command.env_remove("JOURNAL_STREAM");
        command
    }

    fn vcc(&self, arguments: &str) -> CommandOutput {
        self.command().args(arguments.split_whitespace()).output().expect("the command").into()
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("killed");
            child.wait().expect("its end");
        }
    }

    /// Null while it does not answer.
    fn status(&self) -> Value {
        let printed = self.vcc("status --json");
        serde_json::from_str(&printed.stdout).unwrap_or_default()
    }

    /// Device and tenant of each port.
    fn ports(&self) -> Vec<(String, String)> {
        let status = self.status();
        let ports = status["ports"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut ports: Vec<_> =
            ports.iter().map(|port| (text(&port["device"]), text(&port["tenant"]))).collect();
        ports.sort();
        ports
    }

    /// Until the problems that it shows contain `part`.
    #[track_caller]
    fn complains(&self, part: &str) {
        self.comes_to(part, || self.status()["problems"].to_string().contains(part));
    }

    /// Until something holds, which may take as long as a pause after failures.
    #[track_caller]
    fn comes_to(&self, what: &str, holds: impl Fn() -> bool) {
        const PATIENCE: Duration = Duration::from_secs(120);
        let begin = Instant::now();
        while !holds() {
            if begin.elapsed() > PATIENCE {
                let log = std::fs::read_to_string(self.directory.path().join("log"));
                panic!(
                    "not after two minutes: {what}: {}\n{}",
                    self.status(),
                    log.unwrap_or_default()
                );
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    #[track_caller]
    fn has_ports(&self, expected: &[(&str, &str)]) {
        let expected: Vec<(String, String)> =
            expected.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        self.comes_to(&format!("{expected:?}"), || self.ports() == expected);
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.kill();
    }
}

fn policy(name: &str, spec: Value) -> String {
    let api_version = "vcc.internal/v1alpha1";
    json!({ "apiVersion": api_version, "kind": "VccPolicy", "metadata": { "name": name }, "spec": spec })
        .to_string()
}

fn namespace(name: &str, labels: Value) -> String {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name, "labels": labels } })
        .to_string()
}

fn pod(namespace: &str, name: &str, labels: Value) -> String {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "namespace": namespace, "name": name, "labels": labels },
        "spec": { "nodeName": NODE, "containers": [{ "name": "main", "image": "none" }] },
    })
    .to_string()
}

/// What a kubelet says when the CNI plugin has given a pod its addresses.
fn has_address(cluster: &Cluster, namespace: &str, name: &str, address: &str) {
    cluster.apply_status(
        &json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "namespace": namespace, "name": name },
            "status": { "phase": "Running", "podIP": address, "podIPs": [{ "ip": address }] },
        })
        .to_string(),
    );
}

/// A field of vcc's object `RESOURCE/NAME`, by a JSON pointer like `/status/everywhere`. Empty without it.
fn field(cluster: &Cluster, object: &str, pointer: &str) -> String {
    text(object_of_vcc(cluster, object).pointer(pointer))
}

/// An object, or all of a resource. Null if there is none.
fn object_of_vcc(cluster: &Cluster, name: &str) -> Value {
    cluster.object(&format!("/apis/vcc.internal/v1alpha1/{name}")).unwrap_or_default()
}

fn text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}
