//! What an experiment came to: for programs as JSON, for people as a table and a figure.

mod figure;
mod machine;
mod svg;
mod table;
pub(crate) mod verdict;

pub use figure::Figure;
pub use machine::Machine;
pub use svg::render_svg;
pub use table::render_table;
pub use verdict::Verdict;

use crate::emulator::LatenessSummary;
use crate::experiment::Stack;
use crate::fabric::LinkReport;
use crate::measure::median;
use crate::run::RunData;
use crate::translate::Observation;
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The experiment's id.
    pub experiment: String,
    pub title: String,
    pub paper: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<String>,
    pub stack: Stack,
    pub quick: bool,
    pub seed: u64,
    /// Every case has as many valid runs as were asked for.
    pub valid: bool,
    /// Valid, complete, and every expectation holds.
    pub reproduced: bool,
    /// All cases of the experiment were run.
    pub complete: bool,
    pub cases: Vec<CaseReport>,
    pub figure: Figure,
    pub machine: Machine,
    pub command: String,
    /// What each metric is.
    pub definitions: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct CaseReport {
    pub name: String,
    pub valid: bool,
    /// Its expectations hold.
    pub reproduced: bool,
    pub metrics: BTreeMap<String, MetricReport>,
    pub verdicts: Vec<Verdict>,
    pub runs: Vec<RunReport>,
}

/// A metric over the valid runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MetricReport {
    pub median: f64,
    pub min: f64,
    pub max: f64,
    /// The paper's figure, where it gives one.
    pub paper: Option<f64>,
}

#[derive(Debug, Clone, Serialize)]
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
    pub vcc: Vec<Observation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<Series>,
}

#[derive(Debug, Clone, Serialize)]
pub struct FlowReport {
    pub group: String,
    pub goodput_bps: f64,
    pub retransmitted_segs: u64,
    pub sent_segs: u64,
    pub ecn: bool,
    pub payload_ok: bool,
}

/// What a run recorded over time.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Series {
    /// By flow: (seconds, segments).
    pub windows_segs: Vec<Vec<(f64, f64)>>,
    /// (seconds, bytes).
    pub queue_bytes: Vec<(f64, f64)>,
    /// By flow.
    pub ack_gaps_us: Vec<Vec<u32>>,
}

impl Series {
    pub(crate) fn of(data: &RunData) -> Self {
        let windows_segs = data.flows.iter().map(|flow| {
            let points = flow.samples.iter();
            points.map(|sample| (sample.at_us as f64 / 1e6, sample.send_window_segs())).collect()
        });
        let queue = &data.emulator.links[data.bottleneck].queue_series;
        Self {
            windows_segs: windows_segs.collect(),
            queue_bytes: queue.iter().map(|&(us, bytes)| (us as f64 / 1e6, bytes as f64)).collect(),
            ack_gaps_us: data.emulator.ack_gaps_us.clone(),
        }
    }
}

impl MetricReport {
    /// Over the runs that count; none without any.
    pub(crate) fn over(values: &[f64], paper: Option<f64>) -> Option<Self> {
        Some(Self {
            median: median(values)?,
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            paper,
        })
    }
}

impl CaseReport {
    pub(crate) fn valid_runs(&self) -> impl Iterator<Item = &RunReport> {
        self.runs.iter().filter(|run| run.valid)
    }
}

#[cfg(test)]
mod tests;
