//! `helm`, with a cluster or without.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::Cluster;
use super::tools::Tools;

/// `helm` with settings of its own.
pub struct Helm {
    tools: Tools,
    home: TempDir,
    kubeconfig: Option<PathBuf>,
}

impl Helm {
    /// For what takes no cluster. None if it is missing: the calling test is counted as skipped.
    #[track_caller]
    #[must_use]
    pub fn find() -> Option<Self> {
        Some(Self::new(Tools::find()?, None))
    }

    fn new(tools: Tools, kubeconfig: Option<PathBuf>) -> Self {
        Self { tools, home: tempfile::tempdir().expect("a directory"), kubeconfig }
    }

    /// Its stdout if it succeeds, else all of its output.
    pub fn run(&self, directory: &Path, arguments: &[&str]) -> Result<String, String> {
        let mut command = self.tools.command("helm", self.home.path());
        if let Some(kubeconfig) = &self.kubeconfig {
            command.env("KUBECONFIG", kubeconfig);
        }
        let output = command.args(arguments).current_dir(directory).output().expect("helm");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        let printed = text(output.stdout);
        if output.status.success() { Ok(printed) } else { Err(printed + &text(output.stderr)) }
    }
}

impl Cluster {
    /// As the administrator.
    pub fn helm(&self) -> Helm {
        Helm::new(self.tools.clone(), Some(self.kubeconfig()))
    }
}
