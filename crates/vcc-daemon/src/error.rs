//! Errors that prevent the daemon from starting, or end it.

use std::io;
use std::path::PathBuf;

use vcc_policy::Problems;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {path}: {source}", path = path.display())]
    Unreadable { path: PathBuf, source: io::Error },

    #[error("{file} is invalid: {}", counted(problems.errors(), "error"))]
    BadPolicy { file: String, problems: Problems },

    #[error(
        "this host takes its policy from its cluster: change it there (`kubectl get vccpolicies`), or start \
         `vcc run` without --kubernetes"
    )]
    OfCluster,

    #[error(
        "ports still run another version of vcc under its last policy, and new devices do not become ports: \
         they are taken over as soon as the cluster's policies arrive"
    )]
    PolicyToCome,

    #[error("{0}")]
    Kubernetes(#[from] vcc_kube::Error),

    #[error(
        "another `vcc run` is running on this host, and there can be one at a time \
         (`vcc status` shows it)"
    )]
    SecondDaemon,

    #[error("{0}")]
    Port(#[from] vcc_port::Error),

    #[error("{0}")]
    Web(#[from] vcc_web::Error),

    #[error(
        "{what}; start the daemon again: everything is still attached, and connections continue"
    )]
    Lost { what: String },

    #[error("cannot {doing}: {source}")]
    System { doing: String, source: io::Error },
}

impl Error {
    pub(crate) fn system(doing: impl Into<String>, source: io::Error) -> Self {
        Self::System { doing: doing.into(), source }
    }
}

/// A count with its noun.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
