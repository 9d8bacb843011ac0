//! What vcc does at this moment, over HTTP: metrics for Prometheus, whether all is well, and a page
//! that shows ports, rules, pools and flows while they change.
//!
//! [`serve`] asks a [`Source`] for a [`Snapshot`] at most once a second, however many ask it. It
//! changes nothing, and the datapath does not notice it: all is read from maps.

mod api;
mod assets;
mod cache;
mod collect;
mod health;
mod history;
mod ledger;
mod metrics;
mod quantile;
mod server;
pub mod snapshot;
#[doc(hidden)]
pub mod testing;

use std::error;

pub use collect::collect;
pub use metrics::{Kind, METRICS, Metric};
pub use server::{DEFAULT_LISTEN, Error, Limits, Options, Server, serve, serve_with};
pub use snapshot::Snapshot;

/// Where snapshots come from.
pub trait Source: Send + Sync {
    /// Everything as it is now. Called on a thread that may block, never twice at a time.
    fn snapshot(&self) -> Result<Snapshot, Box<dyn error::Error + Send + Sync>>;
}
