//! What each guest of a scenario is to do.

use crate::error::{Error, Result};
use crate::fabric::{HostId, Topology, Window, mac_of};
use crate::hosts::{Family, HostSpec, ipv4_address, tcp_parameters};
use crate::run::Scenario;
use crate::traffic::Pattern;
use std::net::SocketAddrV4;
use vcc_traffic::plan::{
    FlowToReceive, FlowToSend, GuestPlan, Listener, Measure, Neighbour, Network, Sysctl,
};
use vcc_traffic::random::mix;

const DEVICE: &str = "eth0";
const PREFIX_BITS: u8 = 16;
/// Of the first flow, at its sender; by it the receiver knows the flow.
const FROM_PORT: u16 = 20_000;
/// Guests have booted long before this.
const FIRST_CONNECT_NS: u64 = 300_000_000;
/// Handshakes do not meet.
const CONNECT_EVERY_NS: u64 = 5_000_000;

/// How far apart flows begin at the most.
const BEGIN_WITHIN_NS: u64 = 10_000_000;

/// When what happens, from the guests' start.
pub(super) struct Timeline {
    /// All flows are connected.
    pub begin_ns: u64,
    /// The guests end with it.
    pub window: Window,
}

impl Timeline {
    pub fn of(scenario: &Scenario) -> Self {
        let begin_ns = connects_at_ns(scenario.guests.len());
        let start_ns = begin_ns + scenario.warm_up_ns;
        Self { begin_ns, window: Window { start_ns, end_ns: start_ns + scenario.measured_ns } }
    }
}

/// When the flow with this number connects.
fn connects_at_ns(flow: usize) -> u64 {
    FIRST_CONNECT_NS + flow as u64 * CONNECT_EVERY_NS
}

/// One plan for each host.
pub(super) fn plans(
    scenario: &Scenario,
    topology: &Topology,
    timeline: &Timeline,
    seed: u64,
) -> Vec<GuestPlan> {
    let hosts = scenario.hosts(topology);
    let measure = Measure {
        start_ns: timeline.window.start_ns,
        end_ns: timeline.window.end_ns,
        phases: scenario.phases,
        windows_every_us: scenario.window_every_us,
        received_every_us: scenario.goodput_every_us,
    };
    let plan = |(host, spec): (HostId, &HostSpec)| GuestPlan {
        network: network(host, spec),
        sysctls: sysctls(spec),
        listeners: Vec::new(),
        sends: Vec::new(),
        receives: Vec::new(),
        pings: Vec::new(),
        measure,
        ends_at_ns: timeline.window.end_ns,
    };
    let mut plans: Vec<GuestPlan> = hosts.iter().enumerate().map(plan).collect();
    add_flows(&mut plans, scenario, topology, timeline, seed);
    plans
}

/// What the live lab can, and this cannot yet.
pub(super) fn refuse(scenario: &Scenario, hosts: &[HostSpec]) -> Result<()> {
    let cannot = |what: &str| Err(Error::Backend { what: what.into() });
    if scenario.family != Family::Ipv4 {
        return cannot("IPv6");
    }
    if hosts.iter().any(|host| host.proxy.is_some()) {
        return cannot("TCP proxies");
    }
    if hosts.iter().any(|host| host.limits.rate_bps.is_some() || host.limits.cwnd_segs.is_some()) {
        return cannot("rate limits and cwnd clamps of guests");
    }
    Ok(())
}

fn network(host: HostId, spec: &HostSpec) -> Network {
    let neighbours = spec.peers.iter();
    let neighbours =
        neighbours.map(|&peer| Neighbour { address: ipv4_address(peer), mac: mac_of(peer) });
    Network {
        device: DEVICE.into(),
        address: ipv4_address(host),
        prefix_bits: PREFIX_BITS,
        neighbours: neighbours.collect(),
        tso: spec.tso,
    }
}

/// As the live lab's guests have them; buffers are those of a machine with more memory.
fn sysctls(spec: &HostSpec) -> Vec<Sysctl> {
    let tcp = tcp_parameters(spec.ecn, spec.sack).map(|(name, value)| (name, value.to_owned()));
    let buffers = [
        ("ipv4/tcp_rmem", "4096 131072 6291456".to_owned()),
        ("ipv4/tcp_wmem", "4096 131072 4194304".to_owned()),
    ];
    let rto_min = spec
        .limits
        .rto_min_ms
        .map(|rto_min_ms| ("ipv4/tcp_rto_min_us", (u64::from(rto_min_ms) * 1000).to_string()));
    let all = tcp.into_iter().chain(buffers).chain(rto_min);
    all.map(|(name, value)| Sysctl { path: format!("net/{name}"), value }).collect()
}

/// Flows that begin together do so within a few round trips of each other, by chance, as they do
/// where time is real: else all runs would be one.
fn begin_ns(timeline: &Timeline, seed: u64, flow: usize) -> u64 {
    let warm_up_ns = timeline.window.start_ns - timeline.begin_ns;
    let within_ns = BEGIN_WITHIN_NS.min(warm_up_ns).max(1);
    timeline.begin_ns + mix(seed ^ mix(flow as u64 + 1)) % within_ns
}

fn add_flows(
    plans: &mut [GuestPlan],
    scenario: &Scenario,
    topology: &Topology,
    timeline: &Timeline,
    seed: u64,
) {
    let plan = scenario.plan(topology, seed);
    let ports = plan.ports();
    for (flow, (spec, port)) in plan.flows.into_iter().zip(ports).enumerate() {
        let listeners = &mut plans[spec.receiver].listeners;
        if listeners.iter().all(|listener| listener.port != port) {
            let congestion_control = spec.congestion_control.clone();
            listeners.push(Listener { port, congestion_control });
        }
        let from_port = FROM_PORT + flow as u16;
        let start_ns = timeline.window.start_ns;
        plans[spec.sender].sends.push(FlowToSend {
            flow,
            to: SocketAddrV4::new(ipv4_address(spec.receiver), port),
            from_port,
            congestion_control: spec.congestion_control,
            pattern: spec.pattern,
            seed,
            connects_at_ns: connects_at_ns(flow),
            joins_at_ns: match (spec.joins_at_ns, spec.pattern) {
                (Some(at_ns), _) => start_ns + at_ns,
                // Each is counted whole.
                (None, Pattern::Transfers(_)) => start_ns,
                (None, _) => begin_ns(timeline, seed, flow),
            },
            leaves_at_ns: spec.leaves_at_ns.map(|at_ns| start_ns + at_ns),
        });
        let pattern = spec.pattern;
        plans[spec.receiver].receives.push(FlowToReceive { flow, port, from_port, pattern, seed });
    }
}
