//! From a file to its cases: changes applied, mixes multiplied out, everything checked.

use super::file::{Expectation, File, Group, GroupChange, Network, NetworkChange};
use super::locate::{Problem, Step, field};
use crate::fabric::{NetworkSpec, QueueSpec};
use crate::hosts::HostForm;
use crate::run::Guest;
use crate::translate::{Translation, TranslationNames};
use std::collections::BTreeMap;

type Checked<T> = Result<T, Problem>;

/// More hosts than this are not to be made on one machine.
const MOST_GUESTS: u32 = 250;
const LONGEST_DELAY_US: u64 = 1_000_000;

/// One case, ready to be run.
#[derive(Debug, Clone)]
pub struct Case {
    pub name: String,
    pub(crate) network: NetworkSpec,
    pub(crate) guests: Vec<Guest>,
    pub(crate) goodput_floor: f64,
    pub(crate) expect: BTreeMap<String, Expectation>,
    pub(crate) x: f64,
    pub(crate) series: String,
    /// The entry of the file that it comes from, and what its mix added to the name.
    spec: usize,
    suffix: String,
}

pub(super) fn cases(file: &File) -> Checked<Vec<Case>> {
    let mut all = Vec::new();
    for (index, spec) in file.cases.iter().enumerate() {
        let at = field!["cases", index];
        if spec.mixes.is_empty() {
            all.push(case(file, index, &at, None)?);
        }
        for (row, mix) in spec.mixes.iter().enumerate() {
            if mix.len() != file.guests.len() {
                let text = format!(
                    "has {} counts, but there are {} groups of guests",
                    mix.len(),
                    file.guests.len()
                );
                return Err(Problem::new(under(&at, &["mixes".into(), row.into()]), text));
            }
            all.push(case(file, index, &at, Some(mix))?);
        }
    }
    for (index, case) in all.iter().enumerate() {
        if all[..index].iter().any(|other| other.name == case.name) {
            let text = format!("two cases are called '{}'", case.name);
            return Err(Problem::new(field!["cases"], text));
        }
    }
    check_relations(file, &mut all)?;
    Ok(all)
}

fn case(file: &File, index: usize, at: &[Step], mix: Option<&Vec<u32>>) -> Checked<Case> {
    let spec = &file.cases[index];
    for name in spec.guests.keys() {
        if !file.guests.iter().any(|group| group.name == *name) {
            let text = format!("there is no group of guests '{name}'");
            return Err(Problem::new(under(at, &["guests".into(), name.into()]), text));
        }
    }
    let mut guests = Vec::new();
    for (number, group) in file.guests.iter().enumerate() {
        let mut group = changed(group, spec.guests.get(&group.name));
        if let Some(mix) = mix {
            group.count = mix[number];
        }
        let place = under(at, &["guests".into(), (&group.name).into()]);
        if group.count > MOST_GUESTS {
            let text = format!("{} are more than {MOST_GUESTS} guests", group.count);
            return Err(Problem::new(under(&place, &["count".into()]), text));
        }
        let guest = guest(file, number, &group, &place)?;
        guests.extend((0..group.count).map(|_| guest.clone()));
    }
    if guests.is_empty() || guests.len() > MOST_GUESTS as usize {
        let text = format!("has {} guests: it must have 1 to {MOST_GUESTS}", guests.len());
        return Err(Problem::new(at.to_vec(), text));
    }
    let suffix: String = mix.into_iter().flatten().map(|count| format!("-{count}")).collect();
    let first_count = mix.and_then(|mix| mix.first()).copied().unwrap_or_default();
    Ok(Case {
        name: format!("{}{suffix}", spec.name),
        network: network(file, &spec.network, guests.len(), at)?,
        guests,
        goodput_floor: spec.goodput_floor,
        expect: spec.expect.clone(),
        x: spec.x.unwrap_or(f64::from(first_count)),
        series: spec.series.clone().unwrap_or_else(|| spec.name.clone()),
        spec: index,
        suffix,
    })
}

fn changed(group: &Group, change: Option<&GroupChange>) -> Group {
    let mut group = group.clone();
    let Some(change) = change.cloned() else { return group };
    macro_rules! apply {
        ($($field:ident),*) => { $(if let Some(value) = change.$field { group.$field = value; })* };
    }
    apply!(count, ecn, congestion_control, tso, vcc, underlay, guest_ecn, prr, pace_push);
    group
}

fn guest(file: &File, number: usize, group: &Group, at: &[Step]) -> Checked<Guest> {
    let translation = match group.vcc.as_str() {
        "off" => None,
        mode => {
            let names = TranslationNames {
                mode,
                underlay: &group.underlay,
                guest_ecn: &group.guest_ecn,
                prr: group.prr,
                pace_push: group.pace_push,
            };
            let parsed = Translation::parse(&names);
            Some(parsed.map_err(|(field, text)| Problem::new(under(at, &[field.into()]), text))?)
        }
    };
    if translation.is_some() && file.hosts == HostForm::Tap {
        let text = "a host of form 'tap' has no port for vcc to attach to: use hosts = \"veth\"";
        return Err(Problem::new(under(at, &["vcc".into()]), text));
    }
    Ok(Guest {
        group: number,
        ecn: group.ecn,
        tso: group.tso,
        congestion_control: group.congestion_control.clone(),
        translation,
    })
}

fn network(
    file: &File,
    change: &NetworkChange,
    senders: usize,
    at: &[Step],
) -> Checked<NetworkSpec> {
    let Network { topology, rate_mbps, edge_rate_mbps, delay_us, queue } = &file.network;
    let rate_mbps = change.rate_mbps.unwrap_or(*rate_mbps);
    let edge_rate_mbps = change.edge_rate_mbps.or(*edge_rate_mbps).unwrap_or(rate_mbps);
    let queue = change.queue.as_ref().unwrap_or(queue);
    let place = |field: &str, is_changed: bool| {
        let base = if is_changed { at.to_vec() } else { Vec::new() };
        under(&base, &["network".into(), field.into()])
    };
    for (field, rate_mbps) in [("rate_mbps", rate_mbps), ("edge_rate_mbps", edge_rate_mbps)] {
        if !(0.1..=1000.0).contains(&rate_mbps) {
            let text = format!("{rate_mbps} is not within 0.1 and 1000");
            return Err(Problem::new(place(field, change.rate_mbps.is_some()), text));
        }
    }
    let delay_us = change.delay_us.unwrap_or(*delay_us);
    if delay_us > LONGEST_DELAY_US {
        let text = format!("{delay_us} is more than {LONGEST_DELAY_US}");
        return Err(Problem::new(place("delay_us", change.delay_us.is_some()), text));
    }
    let queue_place = place("queue", change.queue.is_some());
    let Some(spec) = file.queues.get(queue) else {
        let known: Vec<&str> = file.queues.keys().map(String::as_str).collect();
        let text = format!("there is no queue '{queue}': there are {}", known.join(", "));
        return Err(Problem::new(queue_place, text));
    };
    let rate_bps = (rate_mbps * 1e6) as u64;
    spec.build(rate_bps, 0).map_err(|text| Problem::new(field!["queues", queue], text))?;
    Ok(NetworkSpec {
        topology: *topology,
        senders,
        rate_bps,
        edge_rate_bps: (edge_rate_mbps * 1e6) as u64,
        delay_ns: delay_us * 1000,
        queue: spec.clone(),
    })
}

/// Expectations name metrics and other cases: both must exist. A case that was made from a mix
/// is compared with that of the same mix, if there is one.
fn check_relations(file: &File, cases: &mut [Case]) -> Checked<()> {
    let names: Vec<String> = cases.iter().map(|case| case.name.clone()).collect();
    for case in cases {
        for (metric, expectation) in &mut case.expect {
            let place = field!["cases", case.spec, "expect", metric];
            if !file.metrics.iter().any(|spec| spec.name == *metric) {
                return Err(Problem::new(place, format!("there is no metric '{metric}'")));
            }
            if let (Some(min), Some(max)) = (expectation.min, expectation.max) {
                if min > max {
                    return Err(Problem::new(place, format!("min {min} is above max {max}")));
                }
            }
            let Some(other) = &mut expectation.relative_to else { continue };
            let mixed = format!("{other}{}", case.suffix);
            if names.contains(&mixed) {
                *other = mixed;
            } else if !names.contains(other) {
                return Err(Problem::new(place, format!("there is no case '{other}'")));
            }
        }
    }
    Ok(())
}

fn under(base: &[Step], steps: &[Step]) -> Vec<Step> {
    [base, steps].concat()
}
