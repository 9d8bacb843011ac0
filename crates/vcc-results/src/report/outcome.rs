//! The outcome of a report over all cases.

use super::verdict::Judgement;
use super::{CaseReport, Report, Verdict};
use crate::result::Backend;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Not every case has as many valid runs as were asked for.
    NotValid,
    /// Valid, and nothing is judged: the runs are too few or too short, or nothing is expected.
    FiguresOnly,
    /// All expectations hold.
    Reproduced,
    /// An expectation fails.
    NotReproduced,
    /// No expectation fails, and some are undecided.
    Undecided,
}

impl Outcome {
    pub(super) fn from_cases(cases: &[CaseReport]) -> Self {
        let has = |judgement| verdicts(cases).any(|verdict| verdict.judgement == judgement);
        if !cases.iter().all(|case| case.valid) {
            Self::NotValid
        } else if has(Judgement::Fails) {
            Self::NotReproduced
        } else if has(Judgement::Undecided) {
            Self::Undecided
        } else if has(Judgement::Holds) {
            Self::Reproduced
        } else {
            Self::FiguresOnly
        }
    }
}

/// The verdicts of all cases.
pub(super) fn verdicts(cases: &[CaseReport]) -> impl Iterator<Item = &Verdict> {
    cases.iter().flat_map(|case| &case.verdicts)
}

/// Metrics with an expectation, in the order of the experiment, and all others.
pub(super) fn expected_metrics(report: &Report) -> (Vec<&str>, Vec<&str>) {
    let expected = verdicts(&report.cases).map(|verdict| verdict.metric.as_str());
    let figures = || report.cases.iter().flat_map(|case| &case.metrics);
    let of_paper = figures().filter(|(_, metric)| metric.paper.is_some());
    let mut judged = Vec::new();
    for name in expected.chain(of_paper.map(|(name, _)| name.as_str())) {
        if !judged.contains(&name) {
            judged.push(name);
        }
    }
    let all: BTreeSet<&str> = figures().map(|(name, _)| name.as_str()).collect();
    let others = all.into_iter().filter(|name| !judged.contains(name)).collect();
    (judged, others)
}

/// Why there is no verdict although all runs are valid.
pub(super) fn why_figures_only(report: &Report) -> String {
    let (was, takes) = (&report.schedule, &report.verdict_takes);
    if was.is_enough_for(takes) {
        return "the cases that were run have no expectations".into();
    }
    let were = if was.runs == 1 { "there was" } else { "there were" };
    let is_shorter = was.measured_s < takes.measured_s || was.warm_up_s < takes.warm_up_s;
    let of = if is_shorter { format!(" of {} s", was.measured_s) } else { String::new() };
    let mut text = format!(
        "a verdict needs {} runs of {} s per case, and {were} {}{of}",
        takes.runs, takes.measured_s, was.runs
    );
    if report.backend == Backend::Virtual && was.runs == 1 {
        text += "; a seed gives the same frames each time, so it is a single sample";
    }
    text
}
