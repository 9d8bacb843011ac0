//! Checks of a file beyond the bounds of its single values.

use super::Case;
use super::file::{Group, Tables};
use super::resolve::Parameters;
use crate::experiment::Metrics;
use crate::experiment::problem::{Problem, Step, field};
use crate::scenario::Flow;
use crate::translation::VccMode;
use vcc_fabric::HostId;
use vcc_results::measure::{self, MetricSpec, Takes};
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

/// Why no run of a case with these parameters has the metric: no flow of its groups, or nothing that
/// records what it is made of.
pub(super) fn lacks(
    tables: &Tables,
    phases: u32,
    case: &Parameters,
    metric: &MetricSpec,
) -> Option<String> {
    let phases = metric.phase.map_or(0..phases, |phase| phase - 1..phase);
    let when = if metric.phase.is_some() { " in that phase" } else { "" };
    let group = |flow: &Flow| tables.flow_groups().nth(flow.group);
    // As `measure::value` does it.
    let members = |name: Option<&str>| -> Vec<&Flow> {
        let counts = |flow: &&Flow| {
            name.map_or(flow.pattern == Pattern::Bulk, |name| group(flow) == Some(name))
                && flow.phases.start < phases.end
                && flow.phases.end > phases.start
        };
        case.flows.iter().filter(counts).collect()
    };
    let (of, over) = (metric.of.as_deref(), metric.over.as_deref());
    if let Some(name) = [of, over].into_iter().flatten().find(|name| members(Some(name)).is_empty())
    {
        return Some(format!("the case has no flows of '{name}'{when}"));
    }
    let flows = members(of);
    if flows.is_empty() {
        return Some(format!("the case has no bulk flows{when}"));
    }
    what_is_missing(tables, case, &flows, measure::takes(metric))
        .map(|what| format!("it takes {what}"))
}

fn what_is_missing(
    tables: &Tables,
    case: &Parameters,
    flows: &[&Flow],
    takes: Takes,
) -> Option<&'static str> {
    let observe = &tables.observe;
    let carry = |is: fn(&Pattern) -> bool| flows.iter().any(|flow| is(&flow.pattern));
    let senders = || flows.iter().map(|flow| flow.sender);
    let ends = || flows.iter().flat_map(|flow| [flow.sender, flow.receiver]);
    let (has, what) = match takes {
        Takes::Nothing => return None,
        Takes::Probes => (observe.probe_every_us.is_some(), "`observe.probe_every_us`"),
        Takes::Windows => (observe.windows_every_us.is_some(), "`observe.windows_every_us`"),
        Takes::AckGaps => (observe.ack_gaps, "`observe.ack_gaps`"),
        Takes::Pings => {
            let pings = |host| guest(case, host).is_some_and(|it| it.ping_every_us.is_some());
            (senders().any(pings), "`ping_every_us` of a guest that sends")
        }
        Takes::Responses => {
            let is = |it: &Pattern| matches!(it, Pattern::PingPong | Pattern::Requests(_));
            (carry(is), "a ping-pong or requests")
        }
        Takes::Transfers => {
            let is = |it: &Pattern| matches!(it, Pattern::Transfers(_) | Pattern::Messages(_));
            (carry(is), "transfers or messages")
        }
        Takes::Pools => (!tables.pools.is_empty(), "`[pools]`"),
        Takes::Port => (ends().any(|host| mode(case, host) != VccMode::Off), "vcc at an end"),
        Takes::Shadow => {
            (senders().any(|host| mode(case, host) == VccMode::Shadow), "shadow mode at a sender")
        }
    };
    (!has).then_some(what)
}

/// Guests are numbered group by group, and behind them the receivers.
fn guest(case: &Parameters, host: HostId) -> Option<&Group> {
    let mut guests = case.groups.iter().flat_map(|it| (0..it.count.get()).map(move |_| it));
    guests.nth(host)
}

fn mode(case: &Parameters, host: HostId) -> VccMode {
    guest(case, host).map_or(case.receivers.vcc.mode, |guest| guest.vcc.mode)
}
