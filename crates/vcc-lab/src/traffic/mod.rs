//! Traffic: bulk flows between guests, all in one thread, with one common window.

mod flow;
mod generator;
mod payload;
mod socket;

pub use flow::{FlowResult, Sample};
pub use generator::{Plan, run};

use crate::fabric::HostId;

/// One bulk flow to be made.
#[derive(Debug, Clone)]
pub struct FlowSpec {
    pub sender: HostId,
    pub receiver: HostId,
    pub congestion_control: String,
}
