//! Experiments: what a file says, checked and resolved into cases.

mod file;
mod locate;
mod resolve;

#[cfg(test)]
pub use file::Bounds;
pub use file::{Expectation, MetricSpec, PlotKind, Stack};
pub use resolve::Case;

use crate::error::{Error, Result};
use crate::measure;
use crate::run::Scenario;
use crate::{fabric::Watch, hosts::Family, hosts::HostForm};
use file::File;
use locate::{Problem, field};
use std::fs;
use std::path::{Path, PathBuf};

/// The files of the directory `experiments`: name and text.
const EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/experiments.rs"));

/// Sampling more often than this would take more time than the traffic.
const SHORTEST_INTERVAL_US: u64 = 100;

/// One artefact of a paper: how to measure it, and what the paper measured.
#[derive(Debug, Clone)]
pub struct Experiment {
    file: File,
    cases: Vec<Case>,
}

/// An experiment as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    pub id: String,
    pub title: String,
}

/// How long one run takes, and how often it is repeated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    pub warm_up_s: f64,
    pub measured_s: f64,
    pub runs: u32,
}

/// How a figure of the experiment is drawn.
#[derive(Debug, Clone)]
pub struct Plot {
    pub kind: PlotKind,
    pub metric: Option<String>,
    pub x: Option<String>,
}

/// The experiments that are built in, in the order of their names.
pub fn experiments() -> Vec<Summary> {
    let parsed = EMBEDDED.iter().filter_map(|(name, source)| parse(name, source).ok());
    parsed.map(|it| Summary { id: it.file.id, title: it.file.title }).collect()
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
    let file: File =
        toml::from_str(source).map_err(|error| locate::syntax_error(name, source, &error))?;
    let checked = check(&file).and_then(|()| resolve::cases(&file));
    let cases = checked.map_err(|problem| problem.at(name, source))?;
    Ok(Experiment { file, cases })
}

fn check(file: &File) -> std::result::Result<(), Problem> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if file.id.is_empty() || !file.id.chars().all(is_plain) {
        let text = "an id is made of lower-case letters, digits and hyphens";
        return Err(Problem::new(field!["id"], text));
    }
    let times = &file.duration;
    let positive = [
        (field!["duration", "measured_s"], times.measured_s),
        (field!["duration", "runs"], f64::from(times.runs)),
        (field!["duration", "quick", "measured_s"], times.quick.measured_s),
        (field!["duration", "quick", "runs"], f64::from(times.quick.runs)),
    ];
    for (at, value) in positive {
        if value.is_nan() || value <= 0.0 {
            return Err(Problem::new(at, "must be more than 0"));
        }
    }
    let intervals = [
        ("windows_every_us", file.observe.windows_every_us),
        ("queue_every_us", file.observe.queue_every_us),
    ];
    for (name, every_us) in intervals {
        if every_us.is_some_and(|every_us| every_us < SHORTEST_INTERVAL_US) {
            let text = format!("must be at least {SHORTEST_INTERVAL_US}");
            return Err(Problem::new(field!["observe", name], text));
        }
    }
    for (index, metric) in file.metrics.iter().enumerate() {
        for (field, group) in [("of", &metric.of), ("over", &metric.over)] {
            let Some(name) = group else { continue };
            if !file.guests.iter().any(|group| group.name == *name) {
                let text = format!("there is no group of guests '{name}'");
                return Err(Problem::new(field!["metrics", index, field], text));
            }
        }
        let known = measure::check(metric);
        known.map_err(|(field, text)| Problem::new(field!["metrics", index, field], text))?;
    }
    if let Some(metric) = &file.plot.metric {
        if !file.metrics.iter().any(|spec| spec.name == *metric) {
            let text = format!("there is no metric '{metric}'");
            return Err(Problem::new(field!["plot", "metric"], text));
        }
    }
    Ok(())
}

impl Experiment {
    pub fn id(&self) -> &str {
        &self.file.id
    }

    pub fn title(&self) -> &str {
        &self.file.title
    }

    pub fn paper(&self) -> &str {
        &self.file.paper
    }

    pub fn scale(&self) -> Option<&str> {
        self.file.scale.as_deref()
    }

    pub fn stack(&self) -> Stack {
        self.file.stack
    }

    pub fn cases(&self) -> &[Case] {
        &self.cases
    }

    pub fn metrics(&self) -> &[MetricSpec] {
        &self.file.metrics
    }

    pub fn plot(&self) -> Plot {
        let plot = self.file.plot.clone();
        Plot { kind: plot.kind, metric: plot.metric, x: plot.x }
    }

    /// Names of the groups of guests, in the order of [`Case`]'s numbers for them.
    pub fn groups(&self) -> Vec<&str> {
        self.file.guests.iter().map(|group| group.name.as_str()).collect()
    }

    pub fn schedule(&self, quick: bool) -> Schedule {
        let full = &self.file.duration;
        let (warm_up_s, measured_s, runs) = match quick {
            true => (full.quick.warm_up_s, full.quick.measured_s, full.quick.runs),
            false => (full.warm_up_s, full.measured_s, full.runs),
        };
        Schedule { warm_up_s, measured_s, runs }
    }

    pub(crate) fn scenario(&self, case: &Case, schedule: &Schedule, stack: Stack) -> Scenario {
        let observe = &self.file.observe;
        let (form, family): (HostForm, Family) = (self.file.hosts, self.file.family);
        Scenario {
            network: case.network.clone(),
            form,
            family,
            sack: stack == Stack::Modern,
            guests: case.guests.clone(),
            warm_up_ns: (schedule.warm_up_s * 1e9) as u64,
            measured_ns: (schedule.measured_s * 1e9) as u64,
            window_every_us: observe.windows_every_us,
            watch: Watch { queue_every_us: observe.queue_every_us, ack_gaps: observe.ack_gaps },
            goodput_floor: case.goodput_floor,
        }
    }
}

#[cfg(test)]
mod tests;
