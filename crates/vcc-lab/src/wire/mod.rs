//! What a treatment of the guests' traffic costs in CPU: two guests of one hypervisor, without an
//! emulated network between them, which would cost more than what is to be measured.
//!
//! Every run is a pair: the same traffic without the treatment and with it, in turns, so that what
//! the machine does beside it favours neither.

mod case;
mod connections;
mod devices;
mod experiment;
mod file;
mod half;
mod meter;
mod metrics;
mod pair;
mod run;
mod side;
mod traffic;
mod translated;

pub use experiment::{Experiment, is_wire, parse};
pub use run::run;
