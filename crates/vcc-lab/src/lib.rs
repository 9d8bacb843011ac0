//! The lab: experiments on real Linux TCP over emulated links and switch queues.
//!
//! An experiment file says which guests send through which network, where vcc is on, and what a
//! paper measured there. [`run`] builds it from network namespaces without names and an emulator
//! that queues in virtual time, or from guest kernels in virtual time, and reports the results.
//!
//! Modules, each of which uses only those below it: `study` (catalogue, runs, benchmarks), `machines`
//! (virtual machines), `wire` (experiments that measure CPU), `backend` (live, virtual time),
//! `experiment` (files, resolved), `options`, `scenario` (what is to be run, as plain data),
//! `congestion_controls` (of guests), `cheats` (what dishonest guests do to their segments), `base`.
//! Measures, verdicts and reports are the crate vcc-results, the emulated network is vcc-fabric.

mod backend;
mod base;
mod cheats;
#[doc(hidden)]
pub mod congestion_controls;
mod experiment;
mod machines;
mod options;
mod scenario;
mod study;
mod wire;

pub use backend::virtual_time::TimeTaken;
pub use base::error::{Error, Result};
pub use base::progress::{Event, Progress, VirtualTime};
pub use options::RunOptions;
pub use study::{Experiment, Summary, bench, experiments, load, run};
