//! What has to hold of a file beyond the bounds of its single values.

use super::file::{File, MetricSpec};
use super::locate::{Problem, Step, field};
use crate::measure;

type Checked = Result<(), Problem>;

pub(super) fn check(file: &File) -> Checked {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if file.id.is_empty() || !file.id.chars().all(is_plain) {
        let text = "an id is made of lower-case letters, digits and hyphens";
        return Err(Problem::new(field!["id"], text));
    }
    check_duration(file)?;
    for (index, metric) in file.metrics.iter().enumerate() {
        check_metric(file, metric, &|name| field!["metrics", index, name])?;
    }
    match &file.plot.metric {
        Some(metric) if !file.metrics.iter().any(|spec| spec.name == *metric) => {
            let text = format!("there is no metric '{metric}'");
            Err(Problem::new(field!["plot", "metric"], text))
        }
        _ => Ok(()),
    }
}

fn check_duration(file: &File) -> Checked {
    let times = &file.duration;
    let positive = [
        (field!["duration", "measured_s"], times.measured_s),
        (field!["duration", "runs"], f64::from(times.runs)),
        (field!["duration", "quick", "measured_s"], times.quick.measured_s),
        (field!["duration", "quick", "runs"], f64::from(times.quick.runs)),
    ];
    let wrong = positive.into_iter().find(|(_, value)| value.is_nan() || *value <= 0.0);
    wrong.map_or(Ok(()), |(at, _)| Err(Problem::new(at, "must be more than 0")))
}

fn check_metric(file: &File, metric: &MetricSpec, at: &dyn Fn(&str) -> Vec<Step>) -> Checked {
    for (field, group) in [("of", &metric.of), ("over", &metric.over)] {
        let Some(name) = group else { continue };
        if !file.guests.iter().any(|group| group.name == *name) {
            return Err(Problem::new(at(field), format!("there is no group of guests '{name}'")));
        }
    }
    let phases = file.duration.phases.get();
    if metric.phase.is_some_and(|phase| !(1..=phases).contains(&phase)) {
        return Err(Problem::new(at("phase"), format!("must be one of the phases 1 to {phases}")));
    }
    measure::check(metric).map_err(|(field, text)| Problem::new(at(field), text))
}
