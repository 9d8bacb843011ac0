//! Reports of an experiment: JSON for programs; a table, a figure and a page for people.

pub mod bench;
mod checkout;
mod expectation;
mod figure;
mod headline;
mod in_short;
mod markdown;
mod numbers;
mod order;
mod origin;
mod outcome;
mod page;
mod read;
mod record;
mod series;
mod sources;
mod study;
mod svg;
mod table;
mod verdict;
mod when;

pub use bench::BenchReport;
pub use checkout::{Recorded, Repeated, confirm, record};
pub use expectation::{Bounds, Expectation};
pub use figure::{Figure, Placed, Plot, PlotKind};
pub use headline::Headline;
pub use in_short::{InShort, Seen};
pub use markdown::matches as matches_pattern;
pub use origin::Machine;
pub use outcome::Outcome;
pub use page::render_page;
pub use read::{ResultFile, Results, read_results};
pub use record::{Confirmation, Folder, Known, Record};
pub use series::Series;
pub use sources::{Age, Sources};
pub use study::{Conditions, Study};
pub use svg::render_svg;
pub use table::render_table;
pub use verdict::{Judgement, Verdict};

use crate::measure::Validity;
use crate::result::statistics::median;
use crate::result::{
    Backend, FrameLog, LatenessSummary, Observation, Reach, RunData, RunFacts, Schedule, Stack,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use vcc_fabric::{HostId, LinkReport};
use vcc_traffic::TcpCounters;

/// Version of the JSON: it grows by one with each change that breaks a reader.
pub const FORMAT_VERSION: u32 = 2;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    pub format_version: u32,
    /// The experiment's id.
    pub experiment: String,
    pub title: String,
    pub paper: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<String>,
    pub stack: Stack,
    pub backend: Backend,
    pub quick: bool,
    pub seed: u64,
    /// Every case has as many valid runs as were asked for.
    pub valid: bool,
    /// All cases of the experiment were run.
    pub complete: bool,
    /// The outcome of the cases that were run.
    pub outcome: Outcome,
    /// The schedule that was asked for, and the one that a verdict needs.
    pub schedule: Schedule,
    pub verdict_takes: Schedule,
    /// The result in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_short: Option<String>,
    pub cases: Vec<CaseReport>,
    pub figure: Figure,
    pub machine: Machine,
    /// Version and, where it is known, commit of the vcc that ran it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vcc_version: Option<String>,
    /// Those that its figures depend on.
    #[serde(default, skip_serializing_if = "Sources::are_unknown")]
    pub sources: Sources,
    /// Seconds that it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_s: Option<f64>,
    pub command: String,
    /// Seconds since 1970, by the machine's clock.
    pub finished_unix_s: u64,
    /// Definition of each metric.
    pub definitions: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CaseReport {
    pub name: String,
    pub valid: bool,
    pub metrics: BTreeMap<String, MetricReport>,
    pub verdicts: Vec<Verdict>,
    pub runs: Vec<RunReport>,
}

/// A metric over the valid runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MetricReport {
    pub median: f64,
    pub min: f64,
    pub max: f64,
    /// Number of valid runs that have it.
    pub runs: u32,
    /// Confidence interval of the median of all possible runs.
    pub reach: Reach,
    /// The paper's figure, where it gives one.
    pub paper: Option<f64>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunReport {
    pub seed: u64,
    pub valid: bool,
    /// Why it is not valid.
    pub reasons: Vec<String>,
    pub warnings: Vec<String>,
    pub metrics: BTreeMap<String, f64>,
    pub flows: Vec<FlowReport>,
    pub links: Vec<LinkReport>,
    pub lateness: LatenessSummary,
    /// In virtual time: equal runs have equal ones.
    #[serde(flatten)]
    pub frame_log: Option<FrameLog>,
    pub vcc: Vec<Observation>,
    /// In virtual time: by host, what the counters of its TCP grew by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tcp: BTreeMap<HostId, TcpCounters>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<Series>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FlowReport {
    pub group: String,
    pub goodput_bps: f64,
    pub retransmitted_segs: u64,
    pub sent_segs: u64,
    pub ecn: bool,
    pub payload_ok: bool,
}

impl RunReport {
    pub fn new(
        facts: &RunFacts,
        data: RunData,
        seed: u64,
        validity: Validity,
        metrics: BTreeMap<String, f64>,
    ) -> Self {
        let flows = facts.flows.iter().zip(&data.flows).map(|(flow, result)| FlowReport {
            group: flow.group.clone(),
            goodput_bps: result.received_bytes() as f64 * 8.0 / facts.active_s(flow),
            retransmitted_segs: result.retransmitted_segs,
            sent_segs: result.sent_segs,
            ecn: result.guest_has_ecn,
            payload_ok: result.payload_ok,
        });
        Self {
            flows: flows.collect(),
            lateness: data.emulator.lateness.summary(),
            links: data.emulator.links,
            vcc: data.translated,
            tcp: data.tcp,
            frame_log: data.frame_log,
            ..Self::without_network(seed, validity, metrics)
        }
    }

    /// Of a run without an emulated network and its flows.
    pub fn without_network(seed: u64, validity: Validity, metrics: BTreeMap<String, f64>) -> Self {
        Self {
            seed,
            valid: validity.reasons.is_empty(),
            reasons: validity.reasons,
            warnings: validity.warnings,
            metrics,
            flows: Vec::new(),
            links: Vec::new(),
            lateness: LatenessSummary::default(),
            vcc: Vec::new(),
            tcp: BTreeMap::new(),
            frame_log: None,
            series: None,
        }
    }
}

impl MetricReport {
    /// Over the runs that count; none without any.
    pub fn over(values: &[f64], paper: Option<f64>) -> Option<Self> {
        Some(Self {
            median: median(values)?,
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            runs: values.len() as u32,
            reach: Reach::from_values(values)?,
            paper,
        })
    }
}

impl Report {
    /// `seed 1`, or `seeds 1 to 10`: each run of a case has its own.
    pub(in crate::report) fn seeds(&self) -> String {
        let runs = self.cases.iter().flat_map(|case| &case.runs);
        let last = runs.map(|run| run.seed).max().unwrap_or(self.seed);
        if last > self.seed {
            format!("seeds {} to {last}", self.seed)
        } else {
            format!("seed {}", self.seed)
        }
    }
}

impl CaseReport {
    /// Valid with `wanted` valid runs; not judged yet.
    pub fn from_runs(
        name: &str,
        wanted: u32,
        runs: Vec<RunReport>,
        metrics: &[&str],
        expect: &BTreeMap<String, Expectation>,
    ) -> Self {
        let counted = || runs.iter().filter(|run| run.valid);
        let figures = metrics.iter().filter_map(|metric| {
            let values: Vec<f64> =
                counted().filter_map(|run| run.metrics.get(*metric).copied()).collect();
            let paper = expect.get(*metric).and_then(|expectation| expectation.paper);
            Some(((*metric).to_owned(), MetricReport::over(&values, paper)?))
        });
        Self {
            name: name.into(),
            valid: counted().count() >= wanted as usize,
            metrics: figures.collect(),
            verdicts: Vec::new(),
            runs,
        }
    }

    pub fn valid_runs(&self) -> impl Iterator<Item = &RunReport> {
        self.runs.iter().filter(|run| run.valid)
    }
}

#[cfg(test)]
mod tests;
