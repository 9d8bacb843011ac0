//! What is kept of a result: its figures and verdicts, without its runs.
//!
//! A record is a small file, `results/data/ID.json`, of which the tables of the documentation are
//! made.

mod confirmation;
mod files;
mod folder;
mod json;
mod known;

pub use confirmation::Confirmation;
pub(in crate::report) use files::{files_in, unreadable};
pub use folder::Folder;
pub use known::Known;

use super::outcome::{expected_metrics, why_figures_only};
use super::{CaseReport, Figure, Judgement, Outcome, Report, Sources, Verdict, origin, when};
use crate::result::{Backend, Stack};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use vcc_plot::LinePanel;

/// Version of the JSON: it grows by one with each change that breaks a reader.
const FORMAT_VERSION: u32 = 1;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    pub format_version: u32,
    /// The experiment's id.
    pub experiment: String,
    pub title: String,
    pub paper: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<String>,
    pub outcome: Outcome,
    /// Why nothing is judged, of an outcome that is figures only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_judged: Option<String>,
    /// The minute of its end, as people write it.
    pub measured: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vcc_version: Option<String>,
    /// Those that the figures depend on; none in a record of an older version.
    #[serde(default, skip_serializing_if = "Sources::are_unknown")]
    pub sources: Sources,
    /// Seconds that it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_s: Option<f64>,
    pub kernel: String,
    pub cpus: usize,
    /// Repeats it.
    pub command: String,
    pub backend: Backend,
    pub stack: Stack,
    /// Of each case.
    pub runs: u32,
    pub measured_s: f64,
    pub first_seed: u64,
    pub last_seed: u64,
    /// In virtual time, of each case the fingerprint of its first valid run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fingerprints: BTreeMap<String, String>,
    /// The first runs were the same with the code of [`Self::sources`], which is newer than the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<Confirmation>,
    /// Definition of each metric.
    pub definitions: BTreeMap<String, String>,
    /// By metric, those with an expectation first, and by case.
    pub rows: Vec<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub curve: Option<Curve>,
}

/// A metric of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    pub metric: String,
    pub case: String,
    /// Over the valid runs; none if no valid run has the metric.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figures: Option<Figures>,
    /// Number of valid runs that have it.
    pub runs: u32,
    /// The paper's figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paper: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judged: Option<Judged>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    pub median: f64,
    pub least: f64,
    pub greatest: f64,
}

/// The bounds of the experiment file, and the verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judged {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// The bounds are for the quotient with this case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative_to: Option<String>,
    /// The paper's quotient with that case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper_quotient: Option<f64>,
    /// How far each run may be from the median, as a share of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<f64>,
    pub verdict: Judgement,
    /// The quotient with the other case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quotient: Option<f64>,
    /// In percent, of a verdict that is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<u32>,
}

/// Medians of a metric by what is on the horizontal axis.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Curve {
    pub metric: String,
    pub x: String,
    pub panels: Vec<LinePanel>,
}

impl Record {
    pub fn from_report(report: &Report) -> Self {
        let (expected, others) = expected_metrics(report);
        let metrics = expected.into_iter().chain(others);
        let rows = metrics
            .flat_map(|metric| report.cases.iter().filter_map(move |case| row(case, metric)));
        let schedule = &report.schedule;
        let runs = report.cases.iter().flat_map(|case| &case.runs);
        Self {
            format_version: FORMAT_VERSION,
            experiment: report.experiment.clone(),
            title: report.title.clone(),
            paper: report.paper.clone(),
            scale: report.scale.clone(),
            outcome: report.outcome,
            not_judged: (report.outcome == Outcome::FiguresOnly).then(|| why_figures_only(report)),
            measured: when::utc_or_unknown(report.finished_unix_s),
            vcc_version: report.vcc_version.clone(),
            sources: report.sources.clone(),
            wall_s: report.wall_s.map(f64::round),
            kernel: report.machine.kernel_version().to_owned(),
            cpus: report.machine.cpus,
            command: origin::portable_command(&report.command),
            backend: report.backend,
            stack: report.stack,
            runs: schedule.runs,
            measured_s: schedule.measured_s,
            first_seed: report.seed,
            last_seed: runs.map(|run| run.seed).max().unwrap_or(report.seed),
            fingerprints: confirmation::fingerprints(report),
            confirmed: None,
            definitions: report.definitions.clone(),
            rows: rows.collect(),
            curve: curve(report),
        }
    }

    /// Of the command that repeats it.
    pub fn arguments(&self) -> impl Iterator<Item = &str> {
        self.command.split_whitespace().skip(1)
    }

    /// Metrics with an expectation, in the order of the rows; all if none has one.
    pub(in crate::report) fn expected_metrics(&self) -> Vec<&str> {
        let (mut expected, mut all) = (Vec::new(), Vec::new());
        for row in &self.rows {
            let name = row.metric.as_str();
            if !all.contains(&name) {
                all.push(name);
            }
            if (row.judged.is_some() || row.has_paper()) && !expected.contains(&name) {
                expected.push(name);
            }
        }
        if expected.is_empty() { all } else { expected }
    }

    pub(in crate::report) fn row(&self, metric: &str, case: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.metric == metric && row.case == case)
    }

    pub(in crate::report) fn has_case(&self, case: &str) -> bool {
        self.rows.iter().any(|row| row.case == case)
    }
}

impl Row {
    /// Whether the paper gives a figure, or a quotient with another case.
    pub(in crate::report) fn has_paper(&self) -> bool {
        self.paper.is_some() || self.judged.as_ref().is_some_and(|it| it.paper_quotient.is_some())
    }
}

/// None for a case that neither has the metric nor should have it.
fn row(case: &CaseReport, metric: &str) -> Option<Row> {
    let measured = case.metrics.get(metric);
    let verdict = case.verdicts.iter().find(|verdict| verdict.metric == metric);
    if measured.is_none() && verdict.is_none() {
        return None;
    }
    Some(Row {
        metric: metric.to_owned(),
        case: case.name.clone(),
        figures: measured.map(|it| Figures {
            median: rounded(it.median),
            least: rounded(it.min),
            greatest: rounded(it.max),
        }),
        runs: measured.map_or(0, |it| it.runs),
        paper: measured.and_then(|it| it.paper),
        judged: verdict.map(judged),
    })
}

fn judged(verdict: &Verdict) -> Judged {
    let is_sure = matches!(verdict.judgement, Judgement::Holds | Judgement::Fails);
    let confidence = |certainty: f64| (100.0 * certainty).floor() as u32;
    Judged {
        min: verdict.min,
        max: verdict.max,
        relative_to: verdict.relative_to.clone(),
        paper_quotient: verdict.paper_quotient,
        spread: verdict.spread,
        verdict: verdict.judgement,
        quotient: verdict.relative_to.as_ref().and(verdict.value).map(rounded),
        confidence: verdict.reach.filter(|_| is_sure).map(|reach| confidence(reach.certainty)),
    }
}

/// The curve of an experiment whose figure is one of a metric.
fn curve(report: &Report) -> Option<Curve> {
    let Figure::Lines { x, y, panels, .. } = &report.figure else { return None };
    let mut panels = panels.clone();
    for point in panels.iter_mut().flat_map(|it| &mut it.lines).flat_map(|it| &mut it.points) {
        point.1 = rounded(point.1);
    }
    let (x, metric) = (x.clone(), y.clone());
    report.definitions.contains_key(y).then_some(Curve { metric, x, panels })
}

/// To six digits, of which the pages show four: the rest is no figure of a median of a few runs.
pub(in crate::report) fn rounded(value: f64) -> f64 {
    let shown = format!("{value:.5e}").parse().unwrap_or(value);
    if value.abs() < 100_000.0 { shown } else { value.round() }
}

#[cfg(test)]
pub(in crate::report) mod tests;
