//! The CPU cost of a treatment of the guests' traffic, measured between two guests of one
//! hypervisor. An emulated network between them would cost more than the treatment.
//!
//! Every run is a pair: equal traffic without the treatment and with it, in turns, so that other
//! load on the machine affects both alike.

mod case;
mod connections;
mod devices;
mod experiment;
mod file;
mod half;
pub mod meter;
mod metrics;
mod pair;
mod run;
mod side;
mod traffic;
mod translated;

pub use experiment::{Experiment, is_wire, parse};
pub use run::{STACK, run};
