//! The lab: experiments on real Linux TCP over emulated links and switch queues.
//!
//! An experiment file says which guests send through which network, where vcc is on, and what a
//! paper measured there. [`run`] builds it from network namespaces without names and an emulator
//! that queues in virtual time, and reports what came of it.

mod catalogue;
mod emulator;
mod error;
mod experiment;
mod fabric;
mod hosts;
mod interrupt;
mod measure;
mod overlay;
mod pools;
mod report;
mod run;
mod system;
mod tracking;
mod traffic;
mod translate;
mod virtual_time;
mod wire;

pub use catalogue::{Experiment, Summary, experiments, load, run};
pub use error::{Error, Result};
pub use experiment::Stack;
pub use report::{
    CaseReport, FORMAT_VERSION, Figure, FlowReport, Judgement, Machine, MetricReport, Outcome,
    Report, ResultFile, Results, RunReport, Series, Verdict, read_results, render_page, render_svg,
    render_table,
};
pub use run::{Backend, Event, Progress, RunOptions, VirtualTime};
pub use virtual_time::{TimeTaken, bench};
