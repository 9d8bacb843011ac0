//! Access to the API server: tokens, keys, and the files in which clients find them.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::Cluster;
use super::tools::Tools;

/// Of a user in the group that may do everything.
const ADMIN_TOKEN: &str = "admin-of-the-test";

/// Writes what the server reads when it starts.
pub(super) fn prepare(tools: &Tools, directory: &Path) {
    let write = |name, text: &[u8]| fs::write(directory.join(name), text).expect("written");
    write("tokens.csv", format!("{ADMIN_TOKEN},admin,admin,system:masters\n").as_bytes());
    let key = tools.command("signing-key", directory).output().expect("a key");
    assert!(key.status.success(), "signing-key: {}", String::from_utf8_lossy(&key.stderr));
    write("signing.key", &key.stdout);
}

pub(super) fn server_options(directory: &Path) -> Vec<String> {
    let path = |name| directory.join(name).display().to_string();
    vec![
        // It makes a certificate for its address there, and takes it again after a restart.
        format!("--cert-dir={}", path("certificates")),
        format!("--token-auth-file={}", path("tokens.csv")),
        "--service-account-issuer=https://kubernetes.default.svc".into(),
        format!("--service-account-key-file={}", path("signing.key")),
        format!("--service-account-signing-key-file={}", path("signing.key")),
    ]
}

impl Cluster {
    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.write_kubeconfig("admin", &json!({ "token": ADMIN_TOKEN }))
    }

    /// A kubeconfig for a token, in a file of its `name`.
    pub fn kubeconfig_with_token(&self, name: &str, token: &str) -> PathBuf {
        self.write_kubeconfig(name, &json!({ "token": token }))
    }

    /// A kubeconfig of a user in `groups` to whom nothing is granted but what the test grants. The
    /// administrator impersonates him: to all that judges requests, they are the user's.
    pub fn kubeconfig_of(&self, user: &str, groups: &[&str]) -> PathBuf {
        let who = json!({ "token": ADMIN_TOKEN, "as": user, "as-groups": groups });
        self.write_kubeconfig(user, &who)
    }

    /// A token of a service account as a kubelet mounts it into a pod: it is bound to the pod and
    /// names the pod's node. Pod and account have to be there.
    pub fn pod_token(&self, namespace: &str, service_account: &str, pod: &str) -> String {
        let created = self.kubectl(&[
            "create",
            "token",
            service_account,
            "--namespace",
            namespace,
            "--bound-object-kind=Pod",
            "--bound-object-name",
            pod,
        ]);
        created.trim_end().to_owned()
    }

    /// The certificates by which clients know the server.
    pub fn certificates(&self) -> PathBuf {
        self.path().join("certificates/apiserver.crt")
    }

    fn write_kubeconfig(&self, name: &str, user: &Value) -> PathBuf {
        let cluster =
            json!({ "server": self.address(), "certificate-authority": self.certificates() });
        let context = json!({ "cluster": "test", "user": name });
        // YAML is JSON's superset.
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "test", "cluster": cluster }],
            "users": [{ "name": name, "user": user }],
            "contexts": [{ "name": "test", "context": context }],
            "current-context": "test",
        });
        let path = self.path().join(format!("{}.kubeconfig", name.replace(['/', ':'], "-")));
        // A process that was given it before may be reading it.
        let mut whole = tempfile::NamedTempFile::new_in(self.path()).expect("a file");
        whole.write_all(config.to_string().as_bytes()).expect("written");
        whole.persist(&path).expect("in its place");
        path
    }
}
