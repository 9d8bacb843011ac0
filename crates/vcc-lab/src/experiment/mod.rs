//! The frame of an experiment, which is the same for every kind: what its file says, its cases and
//! metrics, how its runs follow each other, and the report of them.
//!
//! A kind implements [`Kind`]: what its files and its cases have besides, and with [`Testbed`] how
//! one run of a case becomes metrics.

pub mod bounded;
mod case;
mod document;
mod duration;
mod field_names;
mod file;
mod ledger;
mod locate;
mod matrix;
mod metric;
mod options;
pub mod overlay;
pub mod problem;
mod run;

pub use case::Case;
pub use document::{Document, has_key};
pub use file::{Entry, File, Header};
pub use locate::Source;
pub use metric::{Metric, Metrics};
pub use options::RunOptions;
pub use run::run;

use crate::base::error::Result;
use crate::base::progress::VirtualTime;
use crate::sources;
use problem::Problem;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::Debug;
use vcc_results::report::{CaseReport, Conditions, Figure, InShort, RunReport, Series};
use vcc_results::result::{Backend, Schedule, Stack};

/// One artefact of a paper: how to measure it, and what the paper measured.
#[derive(Debug, Clone)]
pub struct Experiment<K: Kind> {
    pub header: Header,
    pub metrics: Metrics,
    pub cases: Vec<Case<K::Parameters>>,
    pub kind: K,
    /// For errors that only a run finds.
    pub source: Source,
}

/// What a kind of experiment has of its own.
pub trait Kind: Debug + Clone + Sized {
    /// The tables of a file, besides those of every experiment.
    type Tables: DeserializeOwned;
    /// The fields of an entry of `[[cases]]`, besides its name and what it expects.
    type CaseTable: DeserializeOwned;
    /// What a run must know of its case.
    type Parameters: Debug + Clone + Sync;
    type Testbed<'a>: Testbed<Self::Parameters>
    where
        Self: 'a;

    const ORDER: Order;
    /// Its name in the message that refuses virtual time; None if it can run in it.
    const LIVE_ONLY: Option<&'static str> = None;

    /// Checks what the file says beyond the bounds of its single values, and makes its cases.
    fn resolve(
        file: File<Self>,
        document: &Document,
    ) -> std::result::Result<Resolved<Self>, Problem>;

    /// Why no run of this case, which is one of those resolved, has the metric; None if runs may have it.
    fn lacks(
        resolved: &Resolved<Self>,
        case: &Case<Self::Parameters>,
        metric: &str,
    ) -> Option<String>;

    /// Where it runs unless a run says otherwise.
    fn backend(&self) -> Backend {
        Backend::Live
    }

    /// What figures of such a run depend on.
    fn sources(backend: Backend) -> sources::Kind;

    /// The guests' TCP in a run that asks for this one, or for none.
    fn stack(&self, wanted: Option<Stack>) -> Stack;

    /// The most attempts of a case, of which this many must be valid.
    fn most_attempts(runs: u32) -> u32;

    /// Makes what the runs of these cases share. All of it is gone when the testbed is dropped.
    fn prepare<'a>(
        experiment: &'a Experiment<Self>,
        cases: &[&'a Case<Self::Parameters>],
        conditions: &Conditions,
    ) -> Result<Self::Testbed<'a>>;

    /// `series`: recordings of the first valid run of each case, by its name.
    fn figure(
        experiment: &Experiment<Self>,
        cases: &[CaseReport],
        series: &BTreeMap<String, Series>,
    ) -> Figure;

    /// The sentence that a run of it ends with.
    fn in_short(&self) -> Option<&InShort> {
        None
    }
}

/// A file, checked, with its cases resolved.
pub struct Resolved<K: Kind> {
    pub kind: K,
    pub metrics: Metrics,
    pub cases: Vec<Case<K::Parameters>>,
}

/// The order of the runs of an experiment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Order {
    /// All runs of a case, then those of the next.
    CaseByCase,
    /// A run of every case, then the next of every case: the speed of a machine drifts, and so
    /// affects all cases alike.
    Rounds,
}

/// Receives the seconds that are left of a run, and in virtual time its progress.
pub type Tick<'a> = &'a mut dyn FnMut(f64, Option<VirtualTime>);

/// Everything that runs need and share, ready to run cases.
pub trait Testbed<P> {
    /// The approximate length of a run of this case in real time.
    fn run_s(&self, case: &Case<P>) -> f64;

    /// Runs a case once. Its attempts are numbered from 0 on.
    fn run(&mut self, case: &Case<P>, attempt: u32, tick: Tick) -> Result<RunReport>;

    /// Its runs, if they do not disturb each other.
    fn independent(&self) -> Option<&dyn Independent<P>> {
        None
    }
}

/// Runs that may take place at once, each in a thread of its own, and are the same as one by one.
pub trait Independent<P>: Sync {
    /// As many at once have memory on this machine; at least one.
    fn most_at_once(&self) -> Result<usize>;

    /// As [`Testbed::run`].
    fn run(&self, case: &Case<P>, attempt: u32, tick: Tick) -> Result<RunReport>;
}

/// Reads an experiment's file, whose name is for errors.
pub fn parse<K: Kind>(name: &str, text: &str) -> Result<Experiment<K>> {
    let source = Source::new(name, text);
    let read = || -> std::result::Result<_, Problem> {
        let document = source.document()?;
        let file = File::<K>::read(&document)?;
        let header = file.header.clone();
        header.check()?;
        let resolved = K::resolve(file, &document)?;
        case::check(&resolved, header.headline.as_ref())?;
        Ok((header, resolved))
    };
    let (header, resolved) = read().map_err(|problem| source.error(problem))?;
    let Resolved { kind, metrics, cases } = resolved;
    Ok(Experiment { header, metrics, cases, kind, source })
}

impl<K: Kind> Experiment<K> {
    pub fn schedule(&self, quick: bool) -> Schedule {
        self.header.duration.schedule(quick)
    }
}
