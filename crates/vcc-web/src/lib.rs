//! The state of vcc over HTTP: metrics for Prometheus, health, and a live page of ports, rules,
//! pools and flows.
//!
//! [`serve`] asks a [`Source`] for a [`Snapshot`] at most twice a second, under any number of
//! requests. It changes nothing and does not load the datapath: everything is read from maps.

mod api;
mod assets;
mod cache;
mod collect;
mod costs;
mod health;
mod history;
mod ledger;
mod metrics;
mod quantile;
mod readings;
mod server;
pub mod snapshot;
mod tally;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod time;
mod trial;

use std::error;

pub use collect::collect;
pub use metrics::{Kind, METRICS, Metric};
pub use readings::{Readings, RuleReading};
pub use server::{DEFAULT_LISTEN, Error, Limits, Options, Server, serve, serve_with};
pub use snapshot::Snapshot;

/// Takes snapshots.
pub trait Source: Send + Sync {
    /// Called on a thread that may block, and never concurrently.
    fn snapshot(&self) -> Result<Snapshot, Box<dyn error::Error + Send + Sync>>;
}
