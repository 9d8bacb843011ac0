//! What happens to a run beside its traffic.

use vcc_engine::Params;
use vcc_fabric::{HostId, Impairments};

#[derive(Debug, Clone, Default)]
pub struct Chaos {
    /// Of the network, if it is impaired.
    pub impairments: Option<Impairments>,
    /// In order of time.
    pub changes: Vec<Change>,
}

/// Something happens at a host's port.
#[derive(Debug, Clone)]
pub struct Change {
    /// Since the guests' start.
    pub at_ns: u64,
    pub host: HostId,
    pub what: What,
}

#[derive(Debug, Clone)]
pub enum What {
    /// All its connections are treated like this from now on.
    Treat(Params),
    /// Another port, which knows nothing, takes its place.
    Renew,
}
