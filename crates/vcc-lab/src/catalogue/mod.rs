//! All experiments: of an emulated network, of a direct wire, and of virtual machines.

mod backends;
#[cfg(test)]
mod tests;

use crate::base::error::{Error, Result};
use crate::base::progress::Progress;
use crate::experiment::{self, Header, RunOptions, has_key};
use crate::machines::MachinesKind;
use crate::network::NetworkKind;
use crate::sources;
use crate::wire::WireKind;
use backends::Backends;
use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};
use vcc_results::report::{Headline, Report, Sources};
use vcc_results::result::{Backend, Schedule, Stack};

/// The files of the directory `experiments`: name and text.
const EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/experiments.rs"));

/// An experiment of any kind.
#[derive(Debug)]
pub struct Experiment(Box<dyn AnyKind>);

/// An experiment as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    pub id: String,
    pub title: String,
    /// Where it runs, and on which TCP, unless a run says otherwise.
    pub backend: Backend,
    pub stack: Stack,
    /// For its row in the table of all results.
    pub claim: Option<String>,
    pub headline: Option<Headline>,
}

/// The experiments that are built in, in the order of their names.
pub fn experiments() -> Vec<Summary> {
    let parsed = EMBEDDED.iter().filter_map(|(name, source)| parse(name, source).ok());
    parsed.map(|experiment| experiment.0.summary()).collect()
}

/// An experiment by its id, or from a file.
pub fn load(id_or_path: &str) -> Result<Experiment> {
    let embedded = EMBEDDED.iter().find(|(name, _)| name.strip_suffix(".toml") == Some(id_or_path));
    if let Some((name, source)) = embedded {
        return parse(name, source);
    }
    let path = Path::new(id_or_path);
    if !path.exists() && !id_or_path.ends_with(".toml") {
        return Err(Error::NoSuchExperiment(id_or_path.into()));
    }
    let source = fs::read_to_string(path)
        .map_err(|source| Error::Read { path: PathBuf::from(path), source })?;
    parse(id_or_path, &source)
}

/// A table at the top of a file marks its kind.
fn parse(name: &str, source: &str) -> Result<Experiment> {
    if has_key(source, "wire") {
        of_kind::<WireKind>(name, source)
    } else if has_key(source, "machines") {
        of_kind::<MachinesKind>(name, source)
    } else {
        of_kind::<NetworkKind>(name, source)
    }
}

fn of_kind<K: Backends + 'static>(name: &str, source: &str) -> Result<Experiment> {
    Ok(Experiment(Box::new(experiment::parse::<K>(name, source)?)))
}

/// Runs an experiment. Everything that it makes is gone when this returns, also after Ctrl-C.
pub fn run(
    experiment: &Experiment,
    options: &RunOptions,
    progress: &mut dyn Progress,
) -> Result<Report> {
    experiment.0.run(options, progress)
}

impl Experiment {
    pub fn id(&self) -> &str {
        &self.0.header().id
    }

    /// What the figures of a run with this backend depend on.
    pub fn sources(&self, backend: Backend) -> Sources {
        self.0.sources(backend)
    }

    /// Those that can run all its cases.
    pub fn backends(&self) -> Vec<Backend> {
        self.0.backends()
    }

    /// The length of all its runs by their own clock, with the file's number of runs or this one.
    pub fn scheduled_s(&self, runs: Option<u32>) -> f64 {
        self.0.scheduled_s(runs)
    }
}

/// What an experiment can do without its kind being known.
trait AnyKind: Debug {
    fn header(&self) -> &Header;
    fn summary(&self) -> Summary;
    fn sources(&self, backend: Backend) -> Sources;
    fn backends(&self) -> Vec<Backend>;
    fn scheduled_s(&self, runs: Option<u32>) -> f64;
    fn run(&self, options: &RunOptions, progress: &mut dyn Progress) -> Result<Report>;
}

impl<K: Backends> AnyKind for experiment::Experiment<K> {
    fn header(&self) -> &Header {
        &self.header
    }

    fn summary(&self) -> Summary {
        Summary {
            id: self.header.id.clone(),
            title: self.header.title.clone(),
            backend: self.kind.backend(),
            stack: self.kind.stack(None),
            claim: self.header.claim.clone(),
            headline: self.header.headline.clone(),
        }
    }

    fn sources(&self, backend: Backend) -> Sources {
        sources::of_experiment(K::sources(backend), self.source.text())
    }

    fn backends(&self) -> Vec<Backend> {
        K::backends(self)
    }

    fn scheduled_s(&self, runs: Option<u32>) -> f64 {
        let Schedule { warm_up_s, measured_s, runs: own } = self.schedule(false);
        let runs = f64::from(runs.unwrap_or(own));
        self.cases.len() as f64 * runs * (warm_up_s + measured_s)
    }

    fn run(&self, options: &RunOptions, progress: &mut dyn Progress) -> Result<Report> {
        experiment::run(self, options, progress)
    }
}
