//! Judges metrics by the bounds of the experiment file.

use super::numbers::{number, reach};
use super::{CaseReport, Expectation, MetricReport, RunReport};
use crate::result::statistics::median;
use crate::result::{Reach, Stack};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Verdict {
    pub metric: String,
    pub judgement: Judgement,
    /// The median, or that of the quotients with another case; none if there is nothing to judge.
    pub value: Option<f64>,
    /// Confidence interval of the value over all possible runs.
    pub reach: Option<Reach>,
    pub min: Option<f64>,
    pub max: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative_to: Option<String>,
    /// The paper's quotient with that case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper_quotient: Option<f64>,
    /// How far each run may be from the median, as a share of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    /// All of the reach is within the bounds.
    Holds,
    /// All of it is beyond one of them, or a run is too far from the median, or no run that counts has the
    /// metric.
    Fails,
    /// A bound is within the reach: more runs can decide.
    Undecided,
    /// The runs are too short or too few to be judged by, or the case to compare with was not run.
    NotJudged,
}

/// The context of judgements.
pub(super) struct Bench<'a> {
    /// In whose order verdicts are given.
    pub metrics: &'a [&'a str],
    pub stack: Stack,
    /// Runs of each case that a verdict takes; none where those that were made are too few or too
    /// short for one.
    pub runs: Option<u32>,
}

impl Bench<'_> {
    /// `expected` has the expectations of each case.
    pub fn judge(&self, cases: &mut [CaseReport], expected: &[&BTreeMap<String, Expectation>]) {
        let judged: Vec<Vec<Verdict>> = cases
            .iter()
            .zip(expected)
            .map(|(case, expected)| {
                let named = self.metrics.iter().filter_map(|name| expected.get_key_value(*name));
                named.filter_map(|(name, it)| self.verdict(name, it, case, cases)).collect()
            })
            .collect();
        for (case, verdicts) in cases.iter_mut().zip(judged) {
            case.verdicts = verdicts;
        }
    }

    /// None where the file gives the paper's figure and asks for nothing.
    fn verdict(
        &self,
        metric: &str,
        expectation: &Expectation,
        case: &CaseReport,
        all: &[CaseReport],
    ) -> Option<Verdict> {
        let (min, max) = match (self.stack, expectation.modern) {
            (Stack::Modern, Some(modern)) => (modern.min, modern.max),
            _ => (expectation.min, expectation.max),
        };
        let spread = expectation.spread;
        if min.is_none() && max.is_none() && spread.is_none() {
            return None;
        }
        let relative_to = expectation.relative_to.clone();
        let base = relative_to.as_ref().map(|name| all.iter().find(|case| case.name == *name));
        let own = case.metrics.get(metric);
        let (value, reach) = match &base {
            None => (own.map(|own| own.median), own.map(|own| own.reach)),
            Some(base) => {
                let quotients = base.map(|base| quotients(metric, case, base)).unwrap_or_default();
                let is_finite = quotients.iter().all(|quotient| quotient.is_finite());
                let reach = Reach::from_values(&quotients);
                (median(&quotients), reach.filter(|_| is_finite))
            }
        };
        let is_compared = base.is_none_or(|base| base.is_some_and(|base| base.valid));
        let is_scattered = own.zip(spread).is_some_and(|(own, spread)| is_scattered(own, spread));
        let judgement = match self.runs.filter(|_| case.valid && is_compared) {
            None => Judgement::NotJudged,
            Some(_) if is_scattered => Judgement::Fails,
            Some(runs) => judgement(own, reach.filter(|_| is_whole(own, runs)), min, max),
        };
        let value = value.filter(|value| value.is_finite());
        let metric = metric.into();
        let paper_quotient = expectation.paper_quotient;
        Some(Verdict {
            metric,
            judgement,
            value,
            reach,
            min,
            max,
            relative_to,
            paper_quotient,
            spread,
        })
    }
}

/// Of the runs that are valid in both cases, each with the other's of the same number: they share chance,
/// which a seed decides, or on a live machine their time. So their quotient says more than that of two
/// medians.
fn quotients(metric: &str, case: &CaseReport, base: &CaseReport) -> Vec<f64> {
    let value_of = |run: &RunReport| run.metrics.get(metric).copied().filter(|_| run.valid);
    let pairs = case.runs.iter().zip(&base.runs);
    pairs.filter_map(|(own, other)| Some(value_of(own)? / value_of(other)?)).collect()
}

/// Is a run farther from the median than this share of it?
fn is_scattered(metric: &MetricReport, spread: f64) -> bool {
    let MetricReport { median, min, max, .. } = *metric;
    (max - median).max(median - min) > spread * median.abs()
}

/// Whether enough runs for a verdict have the metric: some runs may lack it.
fn is_whole(metric: Option<&MetricReport>, runs: u32) -> bool {
    metric.is_some_and(|metric| metric.runs >= runs)
}

fn judgement(
    own: Option<&MetricReport>,
    reach: Option<Reach>,
    min: Option<f64>,
    max: Option<f64>,
) -> Judgement {
    let Some(reach) = reach else {
        return if own.is_none() { Judgement::Fails } else { Judgement::Undecided };
    };
    let is_beyond =
        |of: f64, above: f64| min.is_some_and(|min| above < min) || max.is_some_and(|max| of > max);
    if is_beyond(reach.low, reach.high) {
        Judgement::Fails
    } else if is_beyond(reach.high, reach.low) {
        Judgement::Undecided
    } else {
        Judgement::Holds
    }
}

/// The paper's figure and its quotient with another case, as far as it gives them; `other` names that case.
pub(super) fn of_paper(figure: Option<f64>, quotient: Option<f64>, other: Option<&str>) -> String {
    let quotient = quotient.zip(other).map(|(it, other)| format!("{} times {other}", number(it)));
    let parts = [figure.map(number), quotient];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

impl Verdict {
    /// The bounds in words; `other` is the case to compare with, if the text names it.
    pub(super) fn wanted(&self, other: Option<&str>) -> String {
        wanted((self.min, self.max), self.spread, other)
    }
}

/// Bounds in words.
pub(super) fn wanted(
    bounds: (Option<f64>, Option<f64>),
    spread: Option<f64>,
    other: Option<&str>,
) -> String {
    let bounds = match bounds {
        (Some(min), Some(max)) => Some(format!("{min} to {max}")),
        (Some(min), None) => Some(format!("at least {min}")),
        (None, Some(max)) => Some(format!("at most {max}")),
        (None, None) => None,
    };
    let times = other.map(|other| format!(" times {other}")).unwrap_or_default();
    let bounds = bounds.map(|bounds| bounds + &times);
    let each = |spread: f64| format!("each run within {:.0} % of the median", 100.0 * spread);
    let parts = [bounds, spread.map(each)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{}", self.metric)?;
        if let Some(other) = &self.relative_to {
            write!(out, " over that of {other}")?;
        }
        match self.value {
            Some(value) => write!(out, " = {}", number(value))?,
            None => write!(out, " unknown")?,
        }
        if let Some(interval) = &self.reach {
            write!(out, ", median of all possible runs {}", reach(interval))?;
        }
        write!(out, ", required {}", self.wanted(None))
    }
}

#[cfg(test)]
mod tests;
