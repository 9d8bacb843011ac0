//! The programs that scripts/kubernetes-tools.sh builds.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::skip;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/kubernetes-tools.sh");

/// The directory that has them.
#[derive(Clone)]
pub(super) struct Tools(PathBuf);

impl Tools {
    /// Without building them, which takes minutes. None if they are missing: the calling test is
    /// counted as skipped.
    #[track_caller]
    pub fn find() -> Option<Self> {
        let output = Command::new(SCRIPT)
            .arg("--cached")
            .stdin(Stdio::null())
            .output()
            .unwrap_or_else(|e| panic!("{SCRIPT}: {e}"));
        if !output.status.success() {
            skip("scripts/kubernetes-tools.sh has not been run");
            return None;
        }
        let path = String::from_utf8(output.stdout).expect("UTF-8");
        Some(Self(Path::new(path.trim_end()).into()))
    }

    /// With a home of its own: neither the caller's settings nor a cluster that he administers have
    /// a part in a test.
    pub fn command(&self, name: &str, home: &Path) -> Command {
        let mut command = Command::new(self.0.join(name));
        command.env("HOME", home).env_remove("KUBECONFIG").stdin(Stdio::null());
        // They run for seconds. A third of a server's CPU time would go to collecting garbage.
        command.env("GOGC", "400");
        command
    }
}
