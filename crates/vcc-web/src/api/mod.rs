//! The JSON of the page.

mod columns;
mod flows;
mod snapshot;

pub use columns::columns;
pub use flows::{FlowsView, Query};
pub use snapshot::SnapshotView;
