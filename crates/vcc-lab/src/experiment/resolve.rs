//! From a file to its cases: changes applied, mixes multiplied out, everything checked.

use super::change;
use super::file::{
    Core, Count, Expectation, File, Group, Network, Receivers, Setup, Vcc, VccMode, Vcpu,
};
use super::locate::{Problem, Step, field};
use crate::fabric::{NetworkSpec, QueueSpec};
use crate::hosts::HostForm;
use std::collections::BTreeMap;

type Checked<T> = Result<T, Problem>;

/// More hosts than this are not to be made on one machine.
const MOST_GUESTS: u32 = 250;

/// One case, ready to be run.
#[derive(Debug, Clone)]
pub struct Case {
    pub name: String,
    pub(crate) network: NetworkSpec,
    /// In the order of the file, with as many guests as the case has of each.
    pub(crate) groups: Vec<Group>,
    pub(crate) receivers: Receivers,
    /// By their names, in whose order they have numbers.
    pub(crate) cores: BTreeMap<String, Core>,
    pub(crate) goodput_floor: f64,
    pub(crate) expect: BTreeMap<String, Expectation>,
    pub(crate) x: f64,
    pub(crate) series: String,
    /// The entry of the file that it comes from, and what its mix added to the name.
    pub(super) spec: usize,
    suffix: String,
}

impl Case {
    /// The group of each guest, by the guests' numbers.
    pub(crate) fn group_of_each(&self) -> impl Iterator<Item = usize> {
        let groups = self.groups.iter().enumerate();
        groups.flat_map(|(number, group)| (0..group.count.get()).map(move |_| number))
    }
}

pub(super) fn cases(file: &File, source: &str) -> Checked<Vec<Case>> {
    let mut all = Vec::new();
    for (index, spec) in file.cases.iter().enumerate() {
        let at = field!["cases", index];
        if let Some(name) = spec.guests.keys().find(|name| !has_group(file, name)) {
            let text = format!("there is no group of guests '{name}'");
            return Err(Problem::new(under(&at, &["guests".into(), name.into()]), text));
        }
        let setup = change::setup(source, index)?;
        if spec.mixes.is_empty() {
            all.push(case(file, setup.clone(), index, &[])?);
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
            all.push(case(file, setup.clone(), index, mix)?);
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

fn has_group(file: &File, name: &str) -> bool {
    file.guests.iter().any(|group| group.name == name)
}

/// `mix` is empty where the counts are the groups' own.
fn case(file: &File, setup: Setup, index: usize, mix: &[Count]) -> Checked<Case> {
    let spec = &file.cases[index];
    let at = field!["cases", index];
    let Setup { network, cores, receivers, mut guests } = setup;
    for (group, count) in guests.iter_mut().zip(mix) {
        group.count = *count;
    }
    for group in &guests {
        let at = under(&at, &["guests".into(), (&group.name).into()]);
        check_group(file, group, &at)?;
        check_vcpu(group.vcpu.as_ref(), &cores, &at)?;
    }
    let receivers_at = under(&at, &["receivers".into()]);
    check_form(file, &receivers.vcc, &receivers_at)?;
    check_vcpu(receivers.vcpu.as_ref(), &cores, &receivers_at)?;
    let senders: u32 = guests.iter().map(|group| group.count.get()).sum();
    if !(1..=MOST_GUESTS).contains(&senders) {
        let text = format!("has {senders} guests: it must have 1 to {MOST_GUESTS}");
        return Err(Problem::new(at, text));
    }
    let suffix: String = mix.iter().map(|count| format!("-{}", count.get())).collect();
    let first_count = mix.first().map_or(0, |count| count.get());
    Ok(Case {
        name: format!("{}{suffix}", spec.name),
        network: build_network(file, &network, senders as usize, &at)?,
        groups: guests,
        receivers,
        cores,
        goodput_floor: spec.goodput_floor,
        expect: spec.expect.clone(),
        x: spec.x.unwrap_or(f64::from(first_count)),
        series: spec.series.clone().unwrap_or_else(|| spec.name.clone()),
        spec: index,
        suffix,
    })
}

fn check_group(file: &File, group: &Group, at: &[Step]) -> Checked<()> {
    check_form(file, &group.vcc, at)?;
    let last = file.duration.phases.get();
    match group.phases {
        Some([from, to]) if from < 1 || from > to || to > last => {
            let text = format!("[{from}, {to}] must be two in order of the phases 1 to {last}");
            Err(Problem::new(under(at, &["phases".into()]), text))
        }
        _ => Ok(()),
    }
}

fn check_vcpu(vcpu: Option<&Vcpu>, cores: &BTreeMap<String, Core>, at: &[Step]) -> Checked<()> {
    let Some(vcpu) = vcpu.filter(|vcpu| !cores.contains_key(&vcpu.core)) else { return Ok(()) };
    let known: Vec<&str> = cores.keys().map(String::as_str).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    let text = format!("there is no core '{}': there are {known}", vcpu.core);
    Err(Problem::new(under(at, &["vcpu".into(), "core".into()]), text))
}

fn check_form(file: &File, vcc: &Vcc, at: &[Step]) -> Checked<()> {
    if vcc.mode == VccMode::Off || file.hosts == HostForm::Veth {
        return Ok(());
    }
    let text = "a host of form 'tap' has no port for vcc to attach to: use hosts = \"veth\"";
    Err(Problem::new(under(at, &["vcc".into()]), text))
}

fn build_network(
    file: &File,
    network: &Network,
    senders: usize,
    at: &[Step],
) -> Checked<NetworkSpec> {
    let Some(queue) = file.queues.get(&network.queue) else {
        let known: Vec<&str> = file.queues.keys().map(String::as_str).collect();
        let text = format!("there is no queue '{}': there are {}", network.queue, known.join(", "));
        let steps = ["network".into(), "queue".into()];
        let is_changed = network.queue != file.network.queue;
        return Err(Problem::new(under(if is_changed { at } else { &[] }, &steps), text));
    };
    let bps = |mbps: f64| (mbps * 1e6) as u64;
    let rate_bps = bps(network.rate_mbps.get());
    queue
        .build(rate_bps, 0)
        .map_err(|text| Problem::new(field!["queues", &network.queue], text))?;
    Ok(NetworkSpec {
        topology: network.topology,
        senders,
        rate_bps,
        edge_rate_bps: network.edge_rate_mbps.map_or(rate_bps, |rate| bps(rate.get())),
        delay_ns: network.delay_us.get() * 1000,
        queue: queue.clone(),
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
