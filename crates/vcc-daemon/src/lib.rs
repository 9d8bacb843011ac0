//! The daemon: keeps this host's ports under one policy.
//!
//! It attaches to devices as they appear, adopts what an earlier daemon left, brings another policy
//! into force without a pause, and answers at a socket. Packets do not need it: all that they meet
//! is pinned in the kernel, so that its end, of whatever kind, changes nothing for a connection.

mod control;
mod daemon;
mod emitting;
mod error;
mod event;
mod heartbeat;
mod http;
mod journal;
mod links;
mod policy_file;
mod ports;
mod problems;
mod runtime_dir;
mod signals;

pub use control::client::{Client, ClientError};
pub use control::protocol::{Answer, Applied, PolicyInForce, PortStatus, Request, Status};
pub use daemon::{Options, run};
pub use error::{Error, counted};
pub use policy_file::read_policy;
pub use runtime_dir::RuntimeDir;

pub type Result<T> = std::result::Result<T, Error>;
