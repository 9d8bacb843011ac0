//! What an experiment came to: for programs as JSON, for people as a table, a figure and a page.

mod figure;
mod in_short;
pub(crate) mod origin;
mod outcome;
mod page;
mod read;
mod svg;
mod table;
pub(crate) mod verdict;

pub use figure::Figure;
pub(crate) use in_short::in_short;
pub use origin::Machine;
pub use outcome::Outcome;
pub use page::render_page;
pub use read::{ResultFile, Results, read_results};
pub use svg::render_svg;
pub use table::render_table;
pub use verdict::{Judgement, Verdict};

use crate::emulator::LatenessSummary;
use crate::experiment::{Expectation, Schedule, Stack};
use crate::fabric::LinkReport;
use crate::measure::{Reach, median};
use crate::run::{Backend, RunData};
use crate::tracking::Pair;
use crate::traffic::{FlowResult, Received, Sample, Transfer};
use crate::translate::Observation;
use crate::virtual_time::FrameLog;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Of the JSON; one more with each change that a reader has to know of.
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
    /// Of the cases that were run.
    pub outcome: Outcome,
    /// What was asked for, and what a verdict takes.
    pub schedule: Schedule,
    pub verdict_takes: Schedule,
    /// What it shows, for those who read nothing else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_short: Option<String>,
    pub cases: Vec<CaseReport>,
    pub figure: Figure,
    pub machine: Machine,
    pub command: String,
    /// Seconds since 1970, by the machine's clock.
    pub finished_unix_s: u64,
    /// What each metric is.
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
    /// Of them: those that have it.
    pub runs: u32,
    /// Where the median of all possible runs lies.
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

/// What a run recorded over time.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Series {
    /// By flow: (seconds, segments).
    pub windows_segs: Vec<Vec<(f64, f64)>>,
    /// By flow: (seconds, segments), of the guest's own window alone.
    pub cwnds_segs: Vec<Vec<(f64, f64)>>,
    /// By flow: (seconds, Mbit/s since the point before).
    pub goodput_mbps: Vec<Vec<(f64, f64)>>,
    /// Of the first flow that vcc watches.
    pub tracking: Vec<Pair>,
    /// Of the probes, in their order.
    pub rtts_us: Vec<f64>,
    /// Of each transfer.
    pub transfers_mbps: Vec<f64>,
    /// (seconds, bytes).
    pub queue_bytes: Vec<(f64, f64)>,
    /// By flow.
    pub ack_gaps_us: Vec<Vec<u32>>,
}

impl Series {
    pub(crate) fn of(data: &RunData) -> Self {
        let queue = &data.emulator.links[data.bottleneck].queue_series;
        let pairs = data.translated.iter().map(|seen| seen.tracking.pairs());
        let pairs = pairs.into_iter().find(|pairs| !pairs.is_empty()).unwrap_or_default();
        let transfers = data.flows.iter().flat_map(|flow| &flow.transfers);
        let rtts_us = data.emulator.probes.samples.iter().map(|probe| probe.rtt_ns as f64 / 1e3);
        Self {
            windows_segs: sampled(data, Sample::send_window_segs),
            cwnds_segs: sampled(data, |sample| f64::from(sample.cwnd_segs)),
            goodput_mbps: data.flows.iter().map(|flow| rates(&flow.received_over_time)).collect(),
            tracking: pairs,
            rtts_us: rtts_us.collect(),
            transfers_mbps: transfers.map(Transfer::mbps).collect(),
            queue_bytes: queue.iter().map(|&(us, bytes)| (seconds(us), bytes as f64)).collect(),
            ack_gaps_us: data.emulator.ack_gaps_us.clone(),
        }
    }
}

fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

fn sampled(data: &RunData, value: fn(&Sample) -> f64) -> Vec<Vec<(f64, f64)>> {
    let points = |flow: &FlowResult| {
        flow.samples.iter().map(|sample| (seconds(sample.at_us), value(sample))).collect()
    };
    data.flows.iter().map(points).collect()
}

fn rates(received: &[Received]) -> Vec<(f64, f64)> {
    let pairs = received.windows(2).filter(|pair| pair[0].at_us < pair[1].at_us);
    pairs
        .map(|pair| {
            let (us, bytes) = (pair[1].at_us - pair[0].at_us, pair[1].bytes - pair[0].bytes);
            (seconds(pair[1].at_us), bytes as f64 * 8.0 / us as f64)
        })
        .collect()
}

impl MetricReport {
    /// Over the runs that count; none without any.
    pub(crate) fn over(values: &[f64], paper: Option<f64>) -> Option<Self> {
        Some(Self {
            median: median(values)?,
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            runs: values.len() as u32,
            reach: Reach::of(values)?,
            paper,
        })
    }
}

impl CaseReport {
    /// Valid with `wanted` valid runs; not judged yet.
    pub(crate) fn of(
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

    pub(crate) fn valid_runs(&self) -> impl Iterator<Item = &RunReport> {
        self.runs.iter().filter(|run| run.valid)
    }
}

#[cfg(test)]
mod tests;
