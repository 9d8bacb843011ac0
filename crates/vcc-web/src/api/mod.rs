//! What the page asks for, as JSON.

mod flows;
mod snapshot;

use std::time::{SystemTime, UNIX_EPOCH};

pub use flows::{FlowsView, Query};
pub use snapshot::SnapshotView;

pub fn unix_ms(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_millis().try_into().unwrap_or(u64::MAX)
}
