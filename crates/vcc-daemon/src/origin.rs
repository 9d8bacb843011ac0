//! Where the host's policy comes from.

use std::fmt;
use std::path::PathBuf;

use crate::policy_file::Source;
use crate::{Error, Result};

/// Where `vcc run` gets its policy.
pub enum Origin {
    File(PathBuf),
    /// The policies of a cluster.
    Kubernetes(OfCluster),
}

pub struct OfCluster {
    pub agent: vcc_kube::Options,
    /// libcni's cache, which knows pods' devices.
    pub cni_cache: PathBuf,
}

impl Origin {
    /// The policy to begin with.
    pub(crate) fn begin(&self) -> Result<Source> {
        match self {
            Self::File(path) => Source::read(path),
            // An empty policy until the first edition arrives.
            Self::Kubernetes(_) => Source::parse(String::new(), WAITING),
        }
    }

    /// The policy as it is now, where that can be read at any time.
    pub(crate) fn read(&self) -> Result<Source> {
        match self {
            Self::File(path) => Source::read(path),
            Self::Kubernetes(_) => Err(Error::OfCluster),
        }
    }
}

/// What [`crate::Status::config`] is without a file.
pub const OF_CLUSTER: &str = "the cluster's policies";

const WAITING: &str = "the cluster's policies, which have not arrived yet";

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Kubernetes(_) => f.write_str(OF_CLUSTER),
        }
    }
}
