//! All experiments: of an emulated network, of a direct wire, and of virtual machines.

use super::run::run as run_network;
use crate::base::error::{Error, Result};
use crate::base::progress::Progress;
use crate::experiment;
use crate::machines;
use crate::options::RunOptions;
use crate::wire;
use std::fs;
use std::path::{Path, PathBuf};
use vcc_results::report::{Headline, Report};
use vcc_results::result::{Backend, Stack};

/// The files of the directory `experiments`: name and text.
pub(super) const EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/experiments.rs"));

#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a process has one or a few of them")]
pub enum Experiment {
    Network(experiment::Experiment),
    Wire(wire::Experiment),
    Machines(machines::Experiment),
}

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
    let summary = |it: Experiment| Summary {
        id: it.id().into(),
        title: it.title().into(),
        backend: it.backend(),
        stack: it.stack(),
        claim: it.claim().map(Into::into),
        headline: it.headline().cloned(),
    };
    parsed.map(summary).collect()
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

fn parse(name: &str, source: &str) -> Result<Experiment> {
    if wire::is_wire(source) {
        wire::parse(name, source).map(Experiment::Wire)
    } else if machines::is_machines(source) {
        machines::parse(name, source).map(Experiment::Machines)
    } else {
        experiment::parse(name, source).map(Experiment::Network)
    }
}

/// Runs an experiment. Everything that it makes is gone when this returns, also after Ctrl-C.
pub fn run(
    experiment: &Experiment,
    options: &RunOptions,
    progress: &mut dyn Progress,
) -> Result<Report> {
    match experiment {
        Experiment::Network(experiment) => run_network(experiment, options, progress),
        Experiment::Wire(_) if options.backend == Some(Backend::Virtual) => {
            Err(Error::Backend { what: "experiments on a wire without a network".into() })
        }
        Experiment::Machines(_) if options.backend == Some(Backend::Virtual) => {
            Err(Error::Backend { what: "virtual machines".into() })
        }
        Experiment::Wire(experiment) => wire::run(experiment, options, progress),
        Experiment::Machines(experiment) => machines::run(experiment, options, progress),
    }
}

impl Experiment {
    pub fn id(&self) -> &str {
        match self {
            Self::Network(experiment) => experiment.id(),
            Self::Wire(experiment) => experiment.id(),
            Self::Machines(experiment) => experiment.id(),
        }
    }

    pub fn title(&self) -> &str {
        match self {
            Self::Network(experiment) => experiment.title(),
            Self::Wire(experiment) => experiment.title(),
            Self::Machines(experiment) => experiment.title(),
        }
    }

    fn claim(&self) -> Option<&str> {
        match self {
            Self::Network(experiment) => experiment.claim(),
            Self::Wire(experiment) => experiment.claim(),
            Self::Machines(experiment) => experiment.claim(),
        }
    }

    fn headline(&self) -> Option<&Headline> {
        match self {
            Self::Network(experiment) => experiment.headline(),
            Self::Wire(experiment) => experiment.headline(),
            Self::Machines(experiment) => experiment.headline(),
        }
    }

    fn backend(&self) -> Backend {
        match self {
            Self::Network(experiment) => experiment.backend(),
            Self::Wire(_) | Self::Machines(_) => Backend::Live,
        }
    }

    fn stack(&self) -> Stack {
        match self {
            Self::Network(experiment) => experiment.stack(),
            Self::Wire(_) => wire::STACK,
            Self::Machines(_) => machines::STACK,
        }
    }
}
