//! The lab: experiments on real Linux TCP over emulated links and switch queues.
//!
//! An experiment file says which guests send through which network, where vcc is on, and what a
//! paper measured there. [`run`] builds it from network namespaces without names and an emulator
//! that queues in virtual time, or from guest kernels in virtual time, and reports the results.
//!
//! Modules, each of which uses only those below it: `catalogue` (all experiments) and `bench`
//! (benchmarks); `network`, `wire` and `machines` (the kinds of experiments); `translation` (a file's
//! `vcc` table); `experiment` (the frame of every kind: file, cases, runs, report); `backend` (live,
//! virtual time); `scenario` (what is to be run, as plain data); `congestion_controls` (of guests);
//! `cheats` (what dishonest guests do to their segments); `sources` (that figures depend on); `base`. Measures, verdicts and reports are the
//! crate vcc-results, the emulated network is vcc-fabric.

mod backend;
mod base;
pub mod bench;
mod catalogue;
mod cheats;
#[doc(hidden)]
pub mod congestion_controls;
mod experiment;
mod machines;
mod network;
mod scenario;
pub mod sources;
mod translation;
mod wire;

pub use backend::virtual_time::TimeTaken;
pub use base::error::{Error, Result};
pub use base::progress::{Event, Progress, VirtualTime};
pub use catalogue::{Experiment, Summary, experiments, load, run};
pub use experiment::RunOptions;
