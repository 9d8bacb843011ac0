//! The lab: experiments on real Linux TCP over emulated links and switch queues.
//!
//! An experiment file says which guests send through which network, where vcc is on, and what a
//! paper measured there. [`run`] builds it from network namespaces without names and an emulator
//! that queues in virtual time, and reports what came of it.

mod emulator;
mod error;
mod experiment;
mod fabric;
mod hosts;
mod interrupt;
mod measure;
mod random;
mod report;
mod run;
mod system;
mod traffic;
mod translate;

pub use error::{Error, Result};
pub use experiment::{Case, Experiment, Schedule, Stack, Summary, experiments, load};
pub use report::{
    CaseReport, Figure, FlowReport, Machine, MetricReport, Report, RunReport, Series, Verdict,
    render_svg, render_table,
};
pub use run::{Event, Progress, RunOptions, run};
