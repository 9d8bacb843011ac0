//! From a file to its cases: changes applied, mixes multiplied out, everything checked.

use super::change;
use super::file::{Core, FlowGroup, Group, Network, Receivers, SchedulerKind, Setup, Tables, Vcpu};
use super::flows::{self, Hosts};
use super::requests;
use super::{Case, File};
use crate::experiment::bounded::Count;
use crate::experiment::problem::{Problem, Step, field};
use crate::experiment::{Document, Entry};
use crate::scenario::{Flow, HostForm};
use crate::translation::{Vcc, VccMode};
use std::collections::{BTreeMap, BTreeSet};
use vcc_fabric::{HostId, MemorySpec, NetworkSpec, QueueSpec, Tiers};
use vcc_traffic::requests::Kind;

type Checked<T> = Result<T, Problem>;

/// The most hosts that one machine carries.
const MOST_GUESTS: u32 = 250;

/// What a run must know of its case.
#[derive(Debug, Clone)]
pub struct Parameters {
    pub network: NetworkSpec,
    /// In the order of the file, with as many guests as the case has of each.
    pub groups: Vec<Group>,
    pub flows: Vec<Flow>,
    /// What flows of requests carry.
    pub requests: Vec<Kind>,
    pub receivers: Receivers,
    /// By their names, in whose order they have numbers.
    pub cores: BTreeMap<String, Core>,
    pub goodput_floor: f64,
    pub ring_overflows: bool,
    pub x: f64,
    pub series: String,
    pub panel: String,
}

impl Parameters {
    /// The congestion controls that its guests run.
    pub fn congestion_controls(&self) -> BTreeSet<&str> {
        let present = self.groups.iter().filter(|group| group.count.get() > 0);
        present.map(|group| group.congestion_control.as_str()).collect()
    }
}

pub(super) fn cases(file: &File, document: &Document) -> Checked<Vec<Case>> {
    let mut all = Vec::new();
    for (index, entry) in file.entries.iter().enumerate() {
        let (at, spec) = (field!["cases", index], &entry.own);
        if let Some(name) = spec.guests.keys().find(|name| !has_group(&file.tables, name)) {
            let text = format!("there is no group of guests '{name}'");
            return Err(Problem::new(under(&at, &["guests".into(), name.into()]), text));
        }
        let has_flows = |name: &str| file.tables.flows.iter().any(|group| group.name == name);
        if let Some(name) = spec.flows.keys().find(|name| !has_flows(name)) {
            let text = format!("there is no group of flows '{name}'");
            return Err(Problem::new(under(&at, &["flows".into(), name.into()]), text));
        }
        let setup = change::setup(document, index)?;
        for variant in variants(file, index)? {
            let suffix = variant.suffix.clone();
            let case = Case {
                name: format!("{}{suffix}", entry.name),
                expect: entry.expect.clone(),
                entry: index,
                parameters: parameters(file, setup.clone(), index, variant)?,
            };
            all.push((case, suffix));
        }
    }
    Ok(of_equal_mixes(all))
}

fn has_group(tables: &Tables, name: &str) -> bool {
    tables.guests.iter().any(|group| group.name == name)
}

/// The values that distinguish the cases of one entry.
#[derive(Default)]
struct Variant {
    /// Groups of guests that have another number of them.
    counts: Vec<(usize, Count)>,
    suffix: String,
    x: f64,
}

fn variants(file: &File, index: usize) -> Checked<Vec<Variant>> {
    let spec = &file.entries[index].own;
    let at = field!["cases", index];
    let mut all = Vec::new();
    for (row, mix) in spec.mixes.iter().enumerate() {
        if mix.len() != file.tables.guests.len() {
            let text = format!(
                "has {} counts, but there are {} groups of guests",
                mix.len(),
                file.tables.guests.len()
            );
            return Err(Problem::new(under(&at, &["mixes".into(), row.into()]), text));
        }
        all.push(Variant {
            counts: mix.iter().copied().enumerate().collect(),
            suffix: mix.iter().map(|count| format!("-{}", count.get())).collect(),
            x: mix.first().map_or(0.0, |count| count.get().into()),
        });
    }
    if spec.counts.len() + usize::from(!spec.mixes.is_empty()) > 1 {
        let text = "only one group of guests can have counts, and only without mixes";
        return Err(Problem::new(under(&at, &["counts".into()]), text));
    }
    for (name, counts) in &spec.counts {
        let Some(group) = file.tables.guests.iter().position(|group| group.name == *name) else {
            let text = format!("there is no group of guests '{name}'");
            return Err(Problem::new(under(&at, &["counts".into(), name.into()]), text));
        };
        all.extend(counts.iter().map(|count| Variant {
            counts: vec![(group, *count)],
            suffix: format!("-{}", count.get()),
            x: count.get().into(),
        }));
    }
    if all.is_empty() {
        all.push(Variant::default());
    }
    Ok(all)
}

fn parameters(file: &File, setup: Setup, index: usize, variant: Variant) -> Checked<Parameters> {
    let Entry { name, own: spec, .. } = &file.entries[index];
    let at = field!["cases", index];
    let Setup { network, cores, receivers, mut guests, flows: flow_groups } = setup;
    let Variant { counts, x, .. } = variant;
    for (group, count) in counts {
        guests[group].count = count;
    }
    check_cores(&cores, &at)?;
    for group in &guests {
        let at = under(&at, &["guests".into(), (&group.name).into()]);
        check_form(file, &group.vcc, &at)?;
        check_vcpu(group.vcpu.as_ref(), &cores, &at)?;
    }
    let receivers_at = under(&at, &["receivers".into()]);
    check_form(file, &receivers.vcc, &receivers_at)?;
    check_vcpu(receivers.vcpu.as_ref(), &cores, &receivers_at)?;
    let is_per_guest = |vcpu: &Vcpu| cores.get(&vcpu.core).is_some_and(|core| core.per_guest);
    if receivers.vcpu.as_ref().is_some_and(is_per_guest) {
        let text = "a core that is per guest is not for receivers";
        return Err(Problem::new(under(&receivers_at, &["vcpu".into(), "core".into()]), text));
    }
    let count: u32 = guests.iter().map(|group| group.count.get()).sum();
    if !(1..=MOST_GUESTS).contains(&count) {
        let text = format!("has {count} guests: it must have 1 to {MOST_GUESTS}");
        return Err(Problem::new(at, text));
    }
    let mut network = build_network(file, &network, &guests, &at)?;
    let peers = network.build().peers;
    let hosts = Hosts { groups: &guests, peers: &peers, phases: file.header.duration.phases() };
    let requests = requests::kinds(&file.tables, &flow_groups)?;
    let flows = case_flows(file, &hosts, &flow_groups, index)?;
    requests::check_guests(&guests, &flow_groups).map_err(|group| {
        let steps = ["guests".into(), (&group).into(), "cwnd_clamp_segs".into()];
        Problem::new(under(&at, &steps), "not possible for flows of requests")
    })?;
    network.busiest = flows::busiest(&flows, count as usize);
    check_shadows(&guests, &flows, &at)?;
    Ok(Parameters {
        network,
        groups: guests,
        flows,
        requests,
        receivers,
        cores,
        goodput_floor: spec.goodput_floor,
        ring_overflows: spec.ring_overflows,
        x: spec.x.unwrap_or(x),
        series: spec.series.clone().unwrap_or_else(|| name.clone()),
        panel: spec.panel.clone(),
    })
}

fn case_flows(
    file: &File,
    hosts: &Hosts,
    groups: &[FlowGroup],
    index: usize,
) -> Checked<Vec<Flow>> {
    if groups.is_empty() && hosts.peers.is_empty() {
        let text = "all hosts of this topology are guests: describe the flows in [[flows]]";
        return Err(Problem::new(field!["network", "topology"], text));
    }
    let own: Vec<FlowGroup> = hosts.groups.iter().map(FlowGroup::of_guests).collect();
    let is_own = groups.is_empty();
    let groups = if is_own { &own } else { groups };
    let mut flows = Vec::new();
    for (number, group) in groups.iter().enumerate() {
        let at = match file.entries[index].own.flows.contains_key(&group.name) {
            _ if is_own => field!["cases", index, "guests", &group.name],
            true => field!["cases", index, "flows", &group.name],
            false => field!["flows", number],
        };
        let refused =
            |(field, text): (&str, String)| Problem::new(under(&at, &[field.into()]), text);
        let asks = requests::asks(&file.tables, group).map_err(refused)?;
        flows.extend(hosts.flows_of(number, group, &asks).map_err(refused)?);
    }
    Ok(flows)
}

/// Shadow mode compares with the single flow that a guest sends.
fn check_shadows(groups: &[Group], flows: &[Flow], at: &[Step]) -> Checked<()> {
    let mut first = 0;
    for group in groups {
        let members = first..first + group.count.get() as usize;
        first = members.end;
        let sends = |host: usize| flows.iter().filter(|flow| flow.sender == host).count();
        if group.vcc.mode == VccMode::Shadow && members.into_iter().any(|host| sends(host) != 1) {
            let steps = ["guests", &group.name, "vcc", "mode"].map(Step::from);
            let text = "shadow mode is for guests that send one flow each";
            return Err(Problem::new(under(at, &steps), text));
        }
    }
    Ok(())
}

fn check_cores(cores: &BTreeMap<String, Core>, at: &[Step]) -> Checked<()> {
    let is_wrong =
        |core: &Core| core.spare_cores.get() > 0 && core.scheduler != SchedulerKind::Credit;
    let Some((name, _)) = cores.iter().find(|(_, core)| is_wrong(core)) else { return Ok(()) };
    let text = "only valid for the credit scheduler";
    Err(Problem::new(under(at, &["cores".into(), name.into(), "spare_cores".into()]), text))
}

fn check_vcpu(vcpu: Option<&Vcpu>, cores: &BTreeMap<String, Core>, at: &[Step]) -> Checked<()> {
    let Some(vcpu) = vcpu.filter(|vcpu| !cores.contains_key(&vcpu.core)) else { return Ok(()) };
    let known: Vec<&str> = cores.keys().map(String::as_str).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    let text = format!("there is no core '{}': there are {known}", vcpu.core);
    Err(Problem::new(under(at, &["vcpu".into(), "core".into()]), text))
}

fn check_form(file: &File, vcc: &Vcc, at: &[Step]) -> Checked<()> {
    if vcc.mode == VccMode::Off || file.tables.hosts == HostForm::Veth {
        return Ok(());
    }
    let text = "a host of form 'tap' has no port for vcc to attach to: use hosts = \"veth\"";
    Err(Problem::new(under(at, &["vcc".into()]), text))
}

fn build_network(
    file: &File,
    network: &Network,
    groups: &[Group],
    at: &[Step],
) -> Checked<NetworkSpec> {
    let Some(queue) = file.tables.queues.get(&network.queue) else {
        let known: Vec<&str> = file.tables.queues.keys().map(String::as_str).collect();
        let text = format!("there is no queue '{}': there are {}", network.queue, known.join(", "));
        let steps = ["network".into(), "queue".into()];
        let is_changed = network.queue != file.tables.network.queue;
        return Err(Problem::new(under(if is_changed { at } else { &[] }, &steps), text));
    };
    let bps = |mbps: f64| (mbps * 1e6) as u64;
    let rate_bps = bps(network.rate_mbps.get());
    queue
        .build(rate_bps, 0)
        .map_err(|text| Problem::new(field!["queues", &network.queue], text))?;
    let spec = NetworkSpec {
        topology: network.topology,
        guests: groups.iter().map(|group| group.count.get() as usize).sum(),
        rate_bps,
        edge_rate_bps: network.edge_rate_mbps.map_or(rate_bps, |rate| bps(rate.get())),
        delay_ns: network.delay_us.get() * 1000,
        edge_delays_ns: edge_delays_ns(groups),
        mtu_bytes: network.mtu_bytes.get(),
        queue: queue.clone(),
        memory: network.switch_memory.map(|memory| MemorySpec {
            bytes: memory.bytes.get().into(),
            alpha: memory.alpha.get(),
        }),
        busiest: 0,
        tiers: Tiers { leaves: network.leaves, spines: network.spines },
    };
    let is_changed = spec.topology != file.tables.network.topology
        || (network.leaves, network.spines)
            != (file.tables.network.leaves, file.tables.network.spines);
    let at = if is_changed { at } else { &[] };
    let refused = |(field, text): (&str, String)| {
        Problem::new(under(at, &["network".into(), field.into()]), text)
    };
    spec.check().map_err(refused)?;
    Ok(spec)
}

/// Guests are numbered group by group.
fn edge_delays_ns(groups: &[Group]) -> BTreeMap<HostId, u64> {
    let delays_ns = groups.iter().flat_map(|group| {
        let delay_ns = group.edge_delay_us.map(|delay| delay.get() * 1000);
        (0..group.count.get()).map(move |_| delay_ns)
    });
    delays_ns.enumerate().filter_map(|(host, delay_ns)| Some((host, delay_ns?))).collect()
}

/// A case that was made from a mix is compared with that of the same mix, if there is one.
fn of_equal_mixes(mut cases: Vec<(Case, String)>) -> Vec<Case> {
    let names: Vec<String> = cases.iter().map(|(case, _)| case.name.clone()).collect();
    for (case, suffix) in &mut cases {
        for other in case.expect.values_mut().filter_map(|it| it.relative_to.as_mut()) {
            let mixed = format!("{other}{suffix}");
            if names.contains(&mixed) {
                *other = mixed;
            }
        }
    }
    cases.into_iter().map(|(case, _)| case).collect()
}

fn under(base: &[Step], steps: &[Step]) -> Vec<Step> {
    [base, steps].concat()
}
