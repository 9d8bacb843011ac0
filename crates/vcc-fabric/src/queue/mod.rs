//! Queue disciplines. A further one is a file, with its `mod`, and a line in [`queues!`].

mod red;
mod red_parameters;
mod tail_drop;
mod threshold;

use serde::{Deserialize, Serialize};

/// A frame at the tail of a queue.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    pub now_ns: u64,
    pub frame_bytes: u64,
    /// Bytes that wait; the frame being sent is not among them.
    pub backlog_bytes: u64,
    /// Since when the link has had nothing to send, if it is idle.
    pub idle_since_ns: Option<u64>,
    pub ecn_capable: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Accept,
    Mark,
    /// The discipline chose to signal congestion by a loss.
    DropEarly,
    /// There was no room.
    DropFull,
    /// There was none in the switch's memory: the link's verdict, not a discipline's.
    DropShared,
}

impl Verdict {
    pub fn is_admitted(self) -> bool {
        matches!(self, Self::Accept | Self::Mark)
    }
}

/// Decides about each frame when it arrives; the link keeps the frames and the time.
pub trait Queue: Send {
    fn admit(&mut self, arrival: &Arrival) -> Verdict;
}

/// Parameters of a queue, from which one is built for each link.
pub trait QueueSpec {
    /// `Err` names the invalid parameter, and what would be valid.
    fn build(&self, rate_bps: u64, seed: u64) -> Result<Box<dyn Queue>, String>;
}

macro_rules! queues {
    ($($variant:ident => $spec:ty),* $(,)?) => {
        /// One queue as an experiment file describes it.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind", rename_all = "kebab-case")]
        pub enum AnyQueue { $($variant($spec)),* }

        impl QueueSpec for AnyQueue {
            fn build(&self, rate_bps: u64, seed: u64) -> Result<Box<dyn Queue>, String> {
                match self { $(Self::$variant(spec) => spec.build(rate_bps, seed)),* }
            }
        }
    };
}

queues! {
    TailDrop => tail_drop::TailDropSpec,
    Red => red::RedSpec,
    Threshold => threshold::ThresholdSpec,
}

/// Room for edge links, which an experiment does not mean to congest.
const EDGE_LIMIT_BYTES: u64 = 1_000_000;

impl AnyQueue {
    pub fn edge() -> Self {
        Self::TailDrop(tail_drop::TailDropSpec { limit_bytes: EDGE_LIMIT_BYTES })
    }
}

fn has_room(arrival: &Arrival, limit_bytes: u64) -> bool {
    arrival.backlog_bytes + arrival.frame_bytes <= limit_bytes
}
