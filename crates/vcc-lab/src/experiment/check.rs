//! Checks of a file beyond the bounds of its single values.

use super::file::File;
use super::problem::{Problem, Step, field};
use super::{Case, cases, duration};
use vcc_results::measure::{self, MetricSpec};
use vcc_traffic::Pattern;

type Checked = Result<(), Problem>;

pub(super) fn check(file: &File) -> Checked {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if file.id.is_empty() || !file.id.chars().all(is_plain) {
        let text = "an id is made of lower-case letters, digits and hyphens";
        return Err(Problem::new(field!["id"], text));
    }
    duration::check(&file.duration.schedule(false), &file.duration.schedule(true))?;
    check_flows(file)?;
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

/// Runs after the cases are resolved, because mixes make names of cases.
pub(super) fn check_headline(file: &File, resolved: &[Case]) -> Checked {
    let check_metric = |name: &str| match file.metrics.iter().any(|metric| metric.name == name) {
        true => Ok(()),
        false => Err(format!("there is no metric '{name}'")),
    };
    let names = resolved.iter().map(|case| case.name.as_str());
    cases::check_headline(file.headline.as_ref(), check_metric, names)
}

/// Runs after the cases are resolved, likewise.
pub(super) fn check_in_short(file: &File, cases: &[Case]) -> Checked {
    let Some(spec) = &file.in_short else { return Ok(()) };
    if !file.metrics.iter().any(|metric| metric.name == spec.metric) {
        let text = format!("there is no metric '{}'", spec.metric);
        return Err(Problem::new(field!["in_short", "metric"], text));
    }
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
fn check_flows(file: &File) -> Checked {
    if file.flows.is_empty() {
        return Ok(());
    }
    for (index, group) in file.flows.iter().enumerate() {
        if file.flows[..index].iter().any(|other| other.name == group.name) {
            let text = format!("two groups of flows are called '{}'", group.name);
            return Err(Problem::new(field!["flows", index, "name"], text));
        }
    }
    for (index, group) in file.guests.iter().enumerate() {
        let said =
            [("traffic", group.traffic != Pattern::default()), ("phases", group.phases.is_some())];
        if let Some((name, _)) = said.into_iter().find(|(_, is_said)| *is_said) {
            let text = "belongs in [[flows]] if there are any";
            return Err(Problem::new(field!["guests", index, name], text));
        }
    }
    Ok(())
}

fn check_metric(file: &File, metric: &MetricSpec, at: &dyn Fn(&str) -> Vec<Step>) -> Checked {
    for (field, group) in [("of", &metric.of), ("over", &metric.over)] {
        let Some(name) = group else { continue };
        if !file.flow_groups().any(|group| group == name) {
            let text = match file.flows.is_empty() {
                true => format!("there is no group of guests '{name}'"),
                false => format!("there is no group of flows '{name}'"),
            };
            return Err(Problem::new(at(field), text));
        }
    }
    let phases = file.duration.phases.get();
    if metric.phase.is_some_and(|phase| !(1..=phases).contains(&phase)) {
        return Err(Problem::new(at("phase"), format!("must be one of the phases 1 to {phases}")));
    }
    measure::check(metric).map_err(|(field, text)| Problem::new(at(field), text))
}
