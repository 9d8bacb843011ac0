//! The data of a run, and statistics over it.

mod conditions;
mod facts;
mod flow;
mod lateness;
#[cfg(test)]
pub(crate) mod made;
mod observation;
mod reach;
mod run;
pub mod statistics;
mod tracking;

pub use conditions::{Backend, Schedule, Stack};
pub use facts::{Ecn, FlowFacts, RunFacts};
pub use flow::FlowResult;
pub use lateness::{Lateness, LatenessSummary};
pub use observation::{Buffered, Delayed, Guessed, Observation, PoolSeen};
pub use reach::Reach;
pub use run::{EmulatorReport, FrameLog, Pings, RunData};
pub use tracking::{Pair, SenderState, Tracking, averaged};
