//! The plan of each guest of a scenario.

use crate::base::error::{Error, Result};
use crate::cheats::End;
use crate::scenario::{
    Family, Flow, HostSpec, Scenario, Translation, address, bare_ipv6, ipv4_address, prefix_bits,
    tcp_parameters,
};
use std::collections::BTreeMap;
use std::iter::successors;
use std::net::SocketAddr;
use vcc_fabric::{HostId, Topology, Window, mac_of};
use vcc_net::random::{SplitMix64, mix};
use vcc_traffic::Pattern;
use vcc_traffic::plan::{
    FlowToReceive, FlowToSend, GuestPlan, Listener, Measure, Neighbour, Network, PingTimes, Pings,
    Sysctl,
};
use vcc_traffic::requests::{ClientPlan, RequestsPlan};
use vcc_traffic::workers::WorkerPlan;

const DEVICE: &str = "eth0";
/// Source port of the first flow. The receiver identifies a flow by its source port.
pub(super) const FROM_PORT: u16 = 20_000;
/// Guests have booted long before this.
const FIRST_CONNECT_NS: u64 = 300_000_000;
/// Handshakes do not meet, unless there are very many.
const CONNECT_EVERY_NS: u64 = 5_000_000;
const CONNECT_ALL_WITHIN_NS: u64 = 500_000_000;

/// How often a guest in shadow mode samples its window, which is compared with vcc's after the same
/// acknowledgement.
const SHADOWED_EVERY_US: u64 = 100;

/// Maximum time to wait for the answers to the last pings.
const LAST_ANSWERS_NS: u64 = 100_000_000;

/// Flows start within this time of each other.
const BEGIN_WITHIN_NS: u64 = 10_000_000;

/// Times of a run, from the guests' start.
pub(super) struct Timeline {
    /// All flows are connected.
    pub begin_ns: u64,
    pub window: Window,
    /// The guests end.
    pub end_ns: u64,
}

impl Timeline {
    pub fn from_scenario(scenario: &Scenario) -> Self {
        let flows = scenario.flows.len();
        let begin_ns = connects_at_ns(flows, flows);
        let start_ns = begin_ns + scenario.warm_up_ns;
        let window = Window { start_ns, end_ns: start_ns + scenario.measured_ns };
        let pings = scenario.guests.iter().any(|guest| guest.ping_every_us.is_some());
        let end_ns = window.end_ns + if pings { LAST_ANSWERS_NS } else { 0 };
        Self { begin_ns, window, end_ns }
    }
}

/// Connect time of one of `flows` flows.
fn connects_at_ns(flow: usize, flows: usize) -> u64 {
    let every_ns = CONNECT_EVERY_NS.min(CONNECT_ALL_WITHIN_NS / flows.max(1) as u64);
    FIRST_CONNECT_NS + flow as u64 * every_ns
}

/// One plan for each host.
pub(super) fn plans(
    scenario: &Scenario,
    topology: &Topology,
    timeline: &Timeline,
    seed: u64,
) -> Vec<GuestPlan> {
    let hosts = scenario.hosts(topology);
    let measure = |host: HostId| Measure {
        start_ns: timeline.window.start_ns,
        end_ns: timeline.window.end_ns,
        phases: scenario.phases,
        windows_every_us: windows_every_us(scenario, host),
        received_every_us: scenario.goodput_every_us,
    };
    let plan = |(host, spec): (HostId, &HostSpec)| GuestPlan {
        network: network(scenario.family, host, spec),
        sysctls: sysctls(scenario.family, spec),
        listeners: Vec::new(),
        sends: Vec::new(),
        workers: Vec::new(),
        requests: RequestsPlan::default(),
        receives: Vec::new(),
        pings: pings(scenario, timeline, seed, host),
        measure: measure(host),
        ends_at_ns: timeline.end_ns,
    };
    let mut plans: Vec<GuestPlan> = hosts.iter().enumerate().map(plan).collect();
    add_flows(&mut plans, scenario, timeline, seed);
    add_workers(&mut plans, scenario, timeline, seed);
    add_requests(&mut plans, scenario, timeline, seed);
    plans
}

/// Their times apart vary by half to either side, as the probes' do.
fn pings(scenario: &Scenario, timeline: &Timeline, seed: u64, host: HostId) -> Vec<Pings> {
    let every_us = scenario.guests.get(host).and_then(|guest| guest.ping_every_us);
    let Some(every_ns) = every_us.map(|us| us * 1000) else { return Vec::new() };
    let Some(flow) = scenario.first_flow_of(host) else { return Vec::new() };
    let Window { start_ns, end_ns } = timeline.window;
    let mut random = SplitMix64::new(seed ^ mix(host as u64 + 1));
    let next = |at_ns: &u64| Some(at_ns + random.around(every_ns));
    let at_ns = successors(Some(start_ns), next).take_while(|&at_ns| at_ns < end_ns).collect();
    vec![Pings {
        number: host,
        to: ipv4_address(scenario.flows[flow].receiver),
        times: PingTimes::At { at_ns },
    }]
}

fn windows_every_us(scenario: &Scenario, host: HostId) -> Option<u64> {
    let translation = scenario.guests.get(host).and_then(|guest| guest.translation.as_ref());
    let shadowed = translation.filter(|it| it.is_compared()).map(|_| SHADOWED_EVERY_US);
    [scenario.window_every_us, shadowed].into_iter().flatten().min()
}

/// Refuses features that only the live backend has.
pub(super) fn refuse(scenario: &Scenario, hosts: &[HostSpec]) -> Result<()> {
    let cannot = |what: &str| Err(Error::Backend { what: what.into() });
    if scenario.family == Family::Ipv6
        && scenario.guests.iter().any(|it| it.ping_every_us.is_some())
    {
        return cannot("pings over IPv6");
    }
    if hosts.iter().any(|host| host.cheat.is_some()) && scenario.family == Family::Ipv6 {
        return cannot("guests that cheat over IPv6");
    }
    let shares = |flow: &Flow| {
        let cheat = scenario.guests[flow.sender].cheat.filter(|it| it.end == End::Receiver);
        let others = scenario.flows.iter().filter(|it| it.receiver == flow.receiver);
        cheat.is_some() && others.count() > 1
    };
    if scenario.flows.iter().any(shares) {
        return cannot("a cheating receiver that is others' too: use a dumbbell");
    }
    if hosts.iter().any(|host| host.proxy.is_some()) {
        return cannot("TCP proxies");
    }
    if scenario.guests.iter().any(|it| it.translation.as_ref().is_some_and(Translation::is_pooled))
    {
        return cannot("pools");
    }
    Ok(())
}

/// The rate of a guest's card: the hypervisor's limit, if there is one. Like the live lab's token
/// bucket it backpressures the guest's queue, but it passes no burst.
pub(super) fn card_rate_bps(host: &HostSpec, link_bps: u64) -> u64 {
    host.limits.rate_bps.map_or(link_bps, |rate_bps| rate_bps.min(link_bps))
}

fn network(family: Family, host: HostId, spec: &HostSpec) -> Network {
    let neighbours = spec.peers.iter();
    let neighbours =
        neighbours.map(|&peer| Neighbour { address: address(family, peer), mac: mac_of(peer) });
    Network {
        device: DEVICE.into(),
        address: address(family, host),
        prefix_bits: prefix_bits(family),
        neighbours: neighbours.collect(),
        tso: spec.tso,
        initial_window_segs: spec.limits.initial_segs,
    }
}

/// The live lab's kernel parameters, with the socket buffers of a machine with more memory.
fn sysctls(family: Family, spec: &HostSpec) -> Vec<Sysctl> {
    let tcp = tcp_parameters(spec.ecn, spec.sack)
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let ipv6 = bare_ipv6(family, DEVICE).into_iter().map(|(name, value)| (name, value.to_owned()));
    let buffers = [
        ("ipv4/tcp_rmem", receive_buffers(spec.receive_buffer_bytes)),
        ("ipv4/tcp_wmem", "4096 131072 4194304".to_owned()),
    ];
    let rto_min = spec
        .limits
        .rto_min_ms
        .map(|rto_min_ms| ("ipv4/tcp_rto_min_us", (u64::from(rto_min_ms) * 1000).to_string()));
    // Linux 7.2: ask for AccECN, and accept it.
    let accecn = spec.accecn.then(|| ("ipv4/tcp_ecn", "3".to_owned()));
    let switches = spec.tcp.parameters().map(|(name, value)| (name, value.to_owned()));
    let own = buffers.into_iter().chain(rto_min).chain(accecn).chain(switches);
    let own = own.map(|(name, value)| (name.to_owned(), value));
    let all = tcp.into_iter().chain(ipv6).chain(own);
    all.map(|(name, value)| Sysctl { path: format!("net/{name}"), value }).collect()
}

/// The least, the first and the greatest size of a socket's receive buffer.
fn receive_buffers(first_bytes: Option<u32>) -> String {
    let first_bytes = first_bytes.unwrap_or(131_072);
    format!("4096 {first_bytes} {}", first_bytes.max(6_291_456))
}

/// Flows that begin together do so within a few round trips of each other, by chance, as they do
/// where time is real: else all runs would be one.
fn begin_ns(timeline: &Timeline, seed: u64, flow: usize) -> u64 {
    let warm_up_ns = timeline.window.start_ns - timeline.begin_ns;
    let within_ns = BEGIN_WITHIN_NS.min(warm_up_ns).max(1);
    timeline.begin_ns + mix(seed ^ mix(flow as u64 + 1)) % within_ns
}

fn add_flows(plans: &mut [GuestPlan], scenario: &Scenario, timeline: &Timeline, seed: u64) {
    let plan = scenario.plan(seed);
    let ports = plan.ports();
    for (flow, (spec, port)) in plan.flows.into_iter().zip(ports).enumerate() {
        let listeners = &mut plans[spec.receiver].listeners;
        if listeners.iter().all(|listener| listener.port != port) {
            let congestion_control = spec.congestion_control_at_receiver;
            listeners.push(Listener { port, congestion_control });
        }
        let from_port = FROM_PORT + flow as u16;
        let start_ns = timeline.window.start_ns;
        plans[spec.sender].sends.push(FlowToSend {
            flow,
            to: SocketAddr::new(address(scenario.family, spec.receiver), port),
            from_port,
            congestion_control: spec.congestion_control,
            pattern: spec.pattern,
            cwnd_clamp_segs: scenario.guests[spec.sender].limits.cwnd_segs,
            seed,
            connects_at_ns: connects_at_ns(flow, scenario.flows.len()),
            joins_at_ns: match (spec.joins_at_ns, spec.pattern) {
                (Some(at_ns), _) => start_ns + at_ns,
                // Each is counted whole.
                (None, Pattern::Transfers(_)) => start_ns,
                (None, _) => begin_ns(timeline, seed, flow),
            },
            leaves_at_ns: spec.leaves_at_ns.map(|at_ns| start_ns + at_ns),
        });
        plans[spec.receiver].receives.push(FlowToReceive {
            flow,
            port,
            from_port,
            is_introduced: spec.has_route_cwnd,
            pattern: spec.pattern,
            seed,
        });
    }
}

/// The workers that send messages: one per sender, group of flows and application.
fn add_workers(plans: &mut [GuestPlan], scenario: &Scenario, timeline: &Timeline, seed: u64) {
    type Whose = (HostId, usize, u32);
    let mut workers: BTreeMap<Whose, WorkerPlan> = BTreeMap::new();
    for (number, flow) in scenario.flows.iter().enumerate() {
        let Pattern::Messages(messages) = flow.pattern else { continue };
        let sends = &plans[flow.sender].sends;
        let Some(place) = sends.iter().position(|send| send.flow == number) else { continue };
        let whose = (flow.sender, flow.group, flow.worker);
        let worker = workers.entry(whose).or_insert_with(|| WorkerPlan {
            flows: Vec::new(),
            messages,
            starts_at_ns: begin_ns(timeline, seed, number),
            seed: mix(seed ^ mix(number as u64 + 1)),
        });
        worker.flows.push(place);
    }
    for ((host, ..), worker) in workers {
        plans[host].workers.push(worker);
    }
}

/// What hosts ask for and how they respond, where there are flows of requests.
fn add_requests(plans: &mut [GuestPlan], scenario: &Scenario, timeline: &Timeline, seed: u64) {
    // Of a strobe, the place of the one client that asks over all flows of a worker.
    let mut strobes: BTreeMap<(HostId, usize, u32), usize> = BTreeMap::new();
    for (number, flow) in scenario.flows.iter().enumerate() {
        let Pattern::Requests(requests) = flow.pattern else { continue };
        for host in [flow.sender, flow.receiver] {
            let plan = &mut plans[host].requests;
            plan.kinds.clone_from(&scenario.requests);
            plan.serves_at_once = scenario.guests.get(host).and_then(|guest| guest.serves_at_once);
        }
        let GuestPlan { sends, requests: plan, .. } = &mut plans[flow.sender];
        let Some(place) = sends.iter().position(|send| send.flow == number) else { continue };
        if flow.asks.is_empty() {
            plan.pools.entry(flow.group).or_default().push(place);
            continue;
        }
        let whose = (flow.sender, flow.group, flow.worker);
        if let Some(&client) = strobes.get(&whose) {
            plan.clients[client].flows.push(place);
            continue;
        }
        if requests.strobe {
            strobes.insert(whose, plan.clients.len());
        }
        plan.clients.push(ClientPlan {
            flows: vec![place],
            asks: flow.asks.clone(),
            think_ms: requests.think_ms,
            starts_at_ns: begin_ns(timeline, seed, number),
            seed: mix(seed ^ mix(number as u64 + 1)),
        });
    }
}
