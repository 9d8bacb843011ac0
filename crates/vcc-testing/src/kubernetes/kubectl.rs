//! `kubectl` against the cluster.

use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

use super::Cluster;

impl Cluster {
    /// `kubectl` as the administrator. Returns its stdout.
    #[track_caller]
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        self.kubectl_with(arguments, "")
    }

    /// `kubectl` as the administrator, which reads `input`: with `-f -`, manifests.
    #[track_caller]
    pub fn kubectl_with(&self, arguments: &[&str], input: &str) -> String {
        let output = self.try_kubectl(&self.kubeconfig(), arguments, input);
        output.unwrap_or_else(|output| panic!("kubectl {}: {output}", arguments.join(" ")))
    }

    /// Creates or changes what the manifests say, as the administrator.
    #[track_caller]
    pub fn apply(&self, manifests: &str) {
        self.kubectl_with(&["apply", "--server-side", "--force-conflicts", "-f", "-"], manifests);
    }

    /// The same for what kubelets and controllers write: the manifests' `status`.
    #[track_caller]
    pub fn apply_status(&self, manifests: &str) {
        let status = "--subresource=status";
        let arguments = ["apply", "--server-side", "--force-conflicts", status, "-f", "-"];
        self.kubectl_with(&arguments, manifests);
    }

    /// `kubectl` as the user of a kubeconfig: its stdout if it succeeds, else its stderr.
    pub fn try_kubectl(
        &self,
        kubeconfig: &Path,
        arguments: &[&str],
        input: &str,
    ) -> Result<String, String> {
        let mut command = self.tools.command("kubectl", self.path());
        command.arg("--kubeconfig").arg(kubeconfig).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("kubectl");
        // It ends without reading if it does not want the input.
        let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
        let Output { status, stdout, stderr } = child.wait_with_output().expect("kubectl");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        if status.success() { Ok(text(stdout)) } else { Err(text(stderr)) }
    }
}
