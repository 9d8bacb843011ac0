//! Virtual machines that take turns on a core: QEMU, a card of several kinds, a peer that is a
//! namespace. Measures single transfers in each direction, or what a port reports about them.

mod card;
mod crowd;
mod experiment;
mod file;
mod link;
mod metrics;
mod network;
mod run;
mod transfer;
mod turns;
mod verdicts;

pub use experiment::{Experiment, is_machines, parse};
pub use run::{STACK, run};
