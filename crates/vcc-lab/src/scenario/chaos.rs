//! What happens to a run besides its traffic.

use std::fmt;
use std::sync::Arc;

use vcc_domain::{Out, Port};
use vcc_fabric::{HostId, Impairments, PathMtu};

#[derive(Debug, Clone, Default)]
pub struct Chaos {
    /// Of the network, if it is impaired.
    pub impairments: Option<Impairments>,
    /// In order of time.
    pub path_mtus: Vec<PathMtu>,
    /// In order of time.
    pub changes: Vec<Change>,
}

/// What happens to a port at a time; it may send.
pub type What = dyn Fn(&mut Port, u64, &mut Out) + Send + Sync;

/// Something happens at a host's port.
#[derive(Clone)]
pub struct Change {
    /// Since the guests' start.
    pub at_ns: u64,
    pub host: HostId,
    pub what: Arc<What>,
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host {} at {} ns", self.host, self.at_ns)
    }
}
