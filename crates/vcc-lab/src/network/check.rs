//! Checks of a file beyond the bounds of its single values.

use super::Case;
use super::file::Tables;
use crate::experiment::Metrics;
use crate::experiment::problem::{Problem, Step, field};
use vcc_results::measure::{self, MetricSpec};
use vcc_results::report::InShort;
use vcc_traffic::Pattern;

type Checked = Result<(), Problem>;

pub(super) fn check(tables: &Tables, phases: u32, metrics: &Metrics) -> Checked {
    check_flows(tables)?;
    for (index, metric) in tables.metrics.iter().enumerate() {
        check_metric(tables, phases, metric, &|name| field!["metrics", index, name])?;
    }
    let plot = tables.plot.metric.as_ref().map_or(Ok(()), |metric| metrics.check(metric));
    plot.map_err(|text| Problem::new(field!["plot", "metric"], text))
}

/// Runs after the cases are resolved, because mixes make names of cases.
pub(super) fn check_in_short(spec: &InShort, metrics: &Metrics, cases: &[Case]) -> Checked {
    let check = metrics.check(&spec.metric);
    check.map_err(|text| Problem::new(field!["in_short", "metric"], text))?;
    for (name, seen) in [("problem", &spec.problem), ("cure", &spec.cure)] {
        if !cases.iter().any(|case| case.name == seen.case) {
            let text = format!("there is no case '{}'", seen.case);
            return Err(Problem::new(field!["in_short", name, "case"], text));
        }
        if !spec.text.contains(&format!("{{{name}}}")) {
            return Err(Problem::new(field!["in_short", "text"], format!("has no {{{name}}}")));
        }
    }
    Ok(())
}

/// `[[flows]]` replaces the guests' own flows.
fn check_flows(tables: &Tables) -> Checked {
    if tables.flows.is_empty() {
        return Ok(());
    }
    for (index, group) in tables.flows.iter().enumerate() {
        if tables.flows[..index].iter().any(|other| other.name == group.name) {
            let text = format!("two groups of flows are called '{}'", group.name);
            return Err(Problem::new(field!["flows", index, "name"], text));
        }
    }
    for (index, group) in tables.guests.iter().enumerate() {
        let said =
            [("traffic", group.traffic != Pattern::default()), ("phases", group.phases.is_some())];
        if let Some((name, _)) = said.into_iter().find(|(_, is_said)| *is_said) {
            let text = "belongs in [[flows]] if there are any";
            return Err(Problem::new(field!["guests", index, name], text));
        }
    }
    Ok(())
}

fn check_metric(
    tables: &Tables,
    phases: u32,
    metric: &MetricSpec,
    at: &dyn Fn(&str) -> Vec<Step>,
) -> Checked {
    for (field, group) in [("of", &metric.of), ("over", &metric.over)] {
        let Some(name) = group else { continue };
        if !tables.flow_groups().any(|group| group == name) {
            let text = match tables.flows.is_empty() {
                true => format!("there is no group of guests '{name}'"),
                false => format!("there is no group of flows '{name}'"),
            };
            return Err(Problem::new(at(field), text));
        }
    }
    if metric.phase.is_some_and(|phase| !(1..=phases).contains(&phase)) {
        return Err(Problem::new(at("phase"), format!("must be one of the phases 1 to {phases}")));
    }
    measure::check(metric).map_err(|(field, text)| Problem::new(at(field), text))
}
