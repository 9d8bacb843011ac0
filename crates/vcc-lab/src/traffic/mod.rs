//! Traffic: flows between guests, all in one thread, with one common window.

mod agenda;
mod flow;
mod generator;
mod payload;
mod ping_pong;
mod result;
mod route_cwnd;
mod senders;
pub(crate) mod socket;
mod tcp_info;

pub use generator::run;
#[cfg(test)]
pub use result::Response;
pub use result::{FlowResult, Received, Sample};
pub use senders::{SenderState, Senders};

use crate::fabric::HostId;
use serde::Deserialize;

/// What the sender of a flow does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Sends all that it can.
    #[default]
    Bulk,
    /// Sends one small message at a time, and waits for its echo.
    PingPong,
}

#[derive(Debug, Clone)]
pub struct Plan {
    pub flows: Vec<FlowSpec>,
    pub warm_up_ns: u64,
    pub measured_ns: u64,
    /// Equal parts of the measured time.
    pub phases: u32,
    /// How often the senders' windows are read.
    pub windows_every_us: Option<u64>,
    /// How often it is noted what has been received.
    pub received_every_us: Option<u64>,
    pub seed: u64,
}

/// One flow to be made. Times are since the start of the window of measurement.
#[derive(Debug, Clone)]
pub struct FlowSpec {
    pub sender: HostId,
    pub receiver: HostId,
    pub pattern: Pattern,
    pub congestion_control: String,
    /// A TCP proxy stands in its way.
    pub is_proxied: bool,
    /// The sender's route says how large cwnd may become.
    pub has_route_cwnd: bool,
    /// With the others, before the window, if left out.
    pub joins_at_ns: Option<u64>,
    pub leaves_at_ns: Option<u64>,
}

impl Plan {
    /// When so many phases have passed, since the start of the window.
    pub fn bound_ns(&self, phases: u64) -> u64 {
        self.measured_ns * phases / u64::from(self.phases)
    }
}
