//! The daemon: keeps this host's ports under one policy.
//!
//! It attaches to devices as they appear, adopts the ports of an earlier daemon, replaces the
//! policy without interrupting anything, and answers requests at a socket. Packets do not depend on
//! it: programs and maps are pinned in the kernel, so connections continue however the daemon ends.

mod allocator;
mod control;
mod daemon;
mod emitting;
mod error;
mod heartbeat;
mod http;
mod journal;
mod kubernetes;
mod origin;
mod policy_file;
mod ports;
mod problems;
mod record_counts;
mod records;
mod signals;

pub use control::client::{Client, ClientError};
pub use control::protocol::{
    Answer, Applied, PolicyInForce, PortStatus, RecordsStatus, Request, Status,
};
pub use daemon::{Options, run};
pub use error::{Error, counted};
pub use journal::LogLevel;
pub use origin::{OF_CLUSTER, OfCluster, Origin};
pub use policy_file::read_policy;
pub use records::{End, Record, RecordsOptions, Target, renamed};
pub use vcc_kube::Options as AgentOptions;
pub use vcc_kube::devices::cni::CACHE as CNI_CACHE;
pub use vcc_kube::schema::yaml as definitions;
pub use vcc_view::RuntimeDir;

pub type Result<T> = std::result::Result<T, Error>;
