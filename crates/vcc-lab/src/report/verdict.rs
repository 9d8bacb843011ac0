//! Whether a metric is what the experiment file says that it has to be.

use super::MetricReport;
use crate::experiment::{Expectation, Stack};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Verdict {
    pub metric: String,
    pub holds: bool,
    /// The median, or its quotient with that of another case; none if there is nothing to judge.
    pub value: Option<f64>,
    pub min: Option<f64>,
    pub max: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative_to: Option<String>,
}

/// Metrics of all cases, by name.
pub(crate) type AllMetrics = BTreeMap<String, BTreeMap<String, MetricReport>>;

/// None where the file gives the paper's figure and asks for nothing.
pub(crate) fn judge(
    metric: &str,
    expectation: &Expectation,
    stack: Stack,
    own: &BTreeMap<String, MetricReport>,
    all: &AllMetrics,
) -> Option<Verdict> {
    let (min, max) = match (stack, expectation.modern) {
        (Stack::Modern, Some(modern)) => (modern.min, modern.max),
        _ => (expectation.min, expectation.max),
    };
    if min.is_none() && max.is_none() {
        return None;
    }
    let median = own.get(metric).map(|report| report.median);
    let value = match &expectation.relative_to {
        None => median,
        Some(other) => {
            let base = all.get(other).and_then(|metrics| metrics.get(metric));
            median.zip(base).map(|(median, base)| median / base.median)
        }
    };
    let value = value.filter(|value| value.is_finite());
    let holds = value.is_some_and(|value| {
        min.is_none_or(|min| value >= min) && max.is_none_or(|max| value <= max)
    });
    let relative_to = expectation.relative_to.clone();
    Some(Verdict { metric: metric.into(), holds, value, min, max, relative_to })
}

impl Verdict {
    /// The bounds in words.
    pub(super) fn wanted(&self) -> String {
        match (self.min, self.max) {
            (Some(min), Some(max)) => format!("{min} to {max}"),
            (Some(min), None) => format!("at least {min}"),
            (None, Some(max)) => format!("at most {max}"),
            (None, None) => "anything".into(),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{}", self.metric)?;
        if let Some(other) = &self.relative_to {
            write!(out, " over that of {other}")?;
        }
        match self.value {
            Some(value) => write!(out, " = {}", super::table::number(value))?,
            None => write!(out, " unknown")?,
        }
        write!(out, ", wanted {}", self.wanted())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Bounds;

    fn metrics(median: f64) -> BTreeMap<String, MetricReport> {
        let report = MetricReport { median, min: 0.0, max: 9.0, paper: None };
        BTreeMap::from([("ratio".to_owned(), report)])
    }

    fn holds(expectation: &Expectation, stack: Stack, median: f64) -> Option<bool> {
        let all = BTreeMap::from([("other".to_owned(), metrics(2.0))]);
        judge("ratio", expectation, stack, &metrics(median), &all).map(|verdict| verdict.holds)
    }

    #[test]
    fn bounds_include_their_ends() {
        let within = Expectation { min: Some(0.9), max: Some(1.1), ..Expectation::default() };
        for (median, expected) in [(0.89, false), (0.9, true), (1.1, true), (1.11, false)] {
            assert_eq!(holds(&within, Stack::NewReno, median), Some(expected));
        }
    }

    #[test]
    fn the_modern_stack_can_have_its_own() {
        let modern = Some(Bounds { min: None, max: Some(0.5) });
        let low = Expectation { max: Some(0.2), modern, ..Expectation::default() };
        assert_eq!(holds(&low, Stack::NewReno, 0.3), Some(false));
        assert_eq!(holds(&low, Stack::Modern, 0.3), Some(true));
    }

    #[test]
    fn a_relation_is_a_quotient_and_needs_both_cases() {
        let relation = |to: &str| Expectation {
            relative_to: Some(to.into()),
            max: Some(0.5),
            ..Expectation::default()
        };
        assert_eq!(holds(&relation("other"), Stack::NewReno, 1.0), Some(true));
        assert_eq!(holds(&relation("other"), Stack::NewReno, 1.1), Some(false));
        assert_eq!(holds(&relation("missing"), Stack::NewReno, 0.1), Some(false));
    }

    #[test]
    fn a_figure_without_bounds_is_no_verdict() {
        let paper = Expectation { paper: Some(0.1), ..Expectation::default() };
        assert_eq!(holds(&paper, Stack::NewReno, 5.0), None);
    }
}
