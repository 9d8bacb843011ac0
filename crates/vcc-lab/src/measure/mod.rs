//! Measures: what a run's data comes down to. Each is a function in one of these files and a
//! line in [`MEASURES`]; an experiment file gives it groups of guests and a name.

mod ack_gaps;
mod goodput;
mod queue;
mod retransmission;
mod shadow;
mod window;

use crate::experiment::MetricSpec;
use crate::run::{RunData, Scenario};
use crate::traffic::FlowResult;

const MEASURES: &[Measure] = &[
    goodput::RATIO,
    goodput::JAIN,
    goodput::TOTAL_MBPS,
    goodput::MEAN_MBPS,
    retransmission::SEGMENTS,
    retransmission::SHARE,
    window::MEAN_SEGS,
    window::PERIOD_S,
    queue::MEAN_BYTES,
    queue::MARKS,
    queue::DROPS,
    ack_gaps::COUNT,
    shadow::REDUCTIONS_OVER_CWRS,
    shadow::CWND_ERROR,
];

pub(crate) struct Measure {
    name: &'static str,
    needs: Needs,
    /// None where the run has nothing to measure it by.
    compute: fn(&View) -> Option<f64>,
}

#[derive(PartialEq)]
enum Needs {
    Nothing,
    /// Two groups.
    Over,
    /// A range of times.
    Range,
}

/// The part of a run that a metric is about.
pub(crate) struct View<'a> {
    data: &'a RunData,
    scenario: &'a Scenario,
    of: Vec<usize>,
    over: Vec<usize>,
    range_ms: (u32, u32),
}

impl View<'_> {
    fn flows<'a>(&'a self, numbers: &'a [usize]) -> impl Iterator<Item = &'a FlowResult> {
        numbers.iter().map(|&number| &self.data.flows[number])
    }
}

/// `Err` names the field that is wrong or missing.
pub(crate) fn check(metric: &MetricSpec) -> Result<(), (&'static str, String)> {
    let Some(measure) = find(&metric.measure) else {
        let known: Vec<&str> = MEASURES.iter().map(|measure| measure.name).collect();
        let text =
            format!("there is no measure '{}': there are {}", metric.measure, known.join(", "));
        return Err(("measure", text));
    };
    if measure.needs == Needs::Over && (metric.of.is_none() || metric.over.is_none()) {
        return Err(("measure", format!("'{}' needs 'of' and 'over'", measure.name)));
    }
    match (metric.from_ms, metric.to_ms) {
        (Some(from), Some(to)) if from >= to => Err(("to_ms", format!("{to} is not above {from}"))),
        (Some(_), Some(_)) => Ok(()),
        _ if measure.needs == Needs::Range => {
            Err(("measure", format!("'{}' needs 'from_ms' and 'to_ms'", measure.name)))
        }
        _ => Ok(()),
    }
}

/// The metric's value in one run; none where the case has no guests of its groups.
pub(crate) fn value(
    metric: &MetricSpec,
    groups: &[&str],
    scenario: &Scenario,
    data: &RunData,
) -> Option<f64> {
    let members = |name: &Option<String>| -> Vec<usize> {
        let is_member = |group: usize| name.as_deref().is_none_or(|name| groups[group] == name);
        (0..scenario.guests.len()).filter(|&i| is_member(scenario.guests[i].group)).collect()
    };
    let (of, over) = (members(&metric.of), members(&metric.over));
    if of.is_empty() || over.is_empty() {
        return None;
    }
    let range_ms = (metric.from_ms.unwrap_or(0), metric.to_ms.unwrap_or(u32::MAX));
    let view = View { data, scenario, of, over, range_ms };
    (find(&metric.measure)?.compute)(&view).filter(|value| value.is_finite())
}

fn find(name: &str) -> Option<&'static Measure> {
    MEASURES.iter().find(|measure| measure.name == name)
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u64), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / count as f64)
}

/// The middle value, or the mean of the two middle ones.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        count if count % 2 == 1 => Some(sorted[half]),
        _ => Some((sorted[half - 1] + sorted[half]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(measure: &str) -> MetricSpec {
        MetricSpec {
            name: "m".into(),
            measure: measure.into(),
            text: String::new(),
            of: None,
            over: None,
            from_ms: None,
            to_ms: None,
        }
    }

    #[test]
    fn a_metric_must_say_what_its_measure_needs() {
        assert_eq!(check(&metric("jain")), Ok(()));
        assert!(check(&metric("jane")).unwrap_err().1.contains("goodput_ratio, jain"));
        assert!(check(&metric("goodput_ratio")).unwrap_err().1.contains("'of' and 'over'"));
        assert!(check(&metric("ack_gaps")).unwrap_err().1.contains("'from_ms'"));
        let backwards = MetricSpec { from_ms: Some(2), to_ms: Some(2), ..metric("ack_gaps") };
        assert_eq!(check(&backwards).unwrap_err().0, "to_ms");
    }

    #[test]
    fn median_of_odd_even_and_none() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }
}
