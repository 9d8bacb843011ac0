//! One case of an experiment, resolved: everything that a run needs, as plain data.

mod addresses;
mod chaos;
mod family;
mod host;
#[cfg(test)]
pub mod made;
mod parameters;
mod plan;
#[cfg(test)]
mod tests;
mod translation;
mod vcpu;

pub use addresses::{address, ipv4_address, prefix_bits};
#[cfg(test)]
pub use chaos::Change;
pub use chaos::Chaos;
pub use family::Family;
pub use host::{HostForm, HostSpec, Limits};
pub use parameters::{BARE_IPV6, QUIET_IPV6, TcpSwitches, bare_ipv6, tcp as tcp_parameters};
pub use plan::{FlowSpec, Plan};
pub use translation::{MAX_FLOWS, PoolShare, Translation};
pub use vcpu::{Core, Scheduler, Share, Vcpu};

use crate::cheats::{Cheat, End};
use std::ops::Range;
use vcc_fabric::{HostId, NetworkSpec, PROBE_BYTES, Topology, Watch};
use vcc_results::result::{Ecn, FlowFacts, RunFacts};
use vcc_traffic::Pattern;
use vcc_traffic::requests::Kind;

/// A host with a guest.
#[derive(Debug, Clone)]
pub struct Guest {
    pub ecn: bool,
    /// Linux 7.2, and AccECN.
    pub accecn: bool,
    pub tso: bool,
    /// TCP small queues.
    pub small_queues: bool,
    /// By the kernel's name for it.
    pub congestion_control: String,
    pub limits: Limits,
    pub tcp: TcpSwitches,
    /// The congestion control of the TCP proxy in its way, if there is one.
    pub proxy: Option<String>,
    /// Interval of its pings to its receiver.
    pub ping_every_us: Option<u64>,
    /// Interrupt moderation of its card, if not the usual one.
    pub interrupt_every_ns: Option<u64>,
    /// The most requests that it works on.
    pub serves_at_once: Option<u32>,
    /// The core that it shares.
    pub vcpu: Option<Vcpu>,
    /// What it does to its segments against the rules; a receiver's cheat is what the receivers of its
    /// flows do.
    pub cheat: Option<&'static Cheat>,
    pub translation: Option<Translation>,
}

impl Guest {
    /// Whether the fabric sees ECN from it.
    pub fn fabric_ecn(&self) -> bool {
        self.ecn
            || self.proxy.is_some()
            || self.translation.as_ref().is_some_and(Translation::gives_ecn)
    }
}

/// A flow from a guest to another, or to a receiver.
#[derive(Debug, Clone)]
pub struct Flow {
    pub group: usize,
    pub sender: HostId,
    pub receiver: HostId,
    pub pattern: Pattern,
    /// The number of the sender's application, of those that send messages, transfers or requests.
    pub worker: u32,
    /// The requests that a client makes, and how often in proportion to the others.
    pub asks: Vec<(usize, u32)>,
    /// The phases in which it sends; 0 is the first.
    pub phases: Range<u32>,
}

/// The hosts without a guest; all are alike.
#[derive(Debug, Clone)]
pub struct Receivers {
    /// Whether they take part in ECN where the other end asks for it.
    pub ecn: bool,
    /// Linux 7.2, and AccECN.
    pub accecn: bool,
    /// Interrupt moderation of the receivers' cards.
    pub interrupt_every_ns: Option<u64>,
    /// What a socket's receive buffer begins with, if not Linux's.
    pub receive_buffer_bytes: Option<u32>,
    /// Frames that the driver domain keeps for one whose ring is full.
    pub backlog_segs: u32,
    pub vcpu: Option<Vcpu>,
    pub translation: Option<Translation>,
}

#[derive(Debug, Clone)]
pub struct Scenario {
    pub network: NetworkSpec,
    pub form: HostForm,
    pub family: Family,
    pub sack: bool,
    pub guests: Vec<Guest>,
    pub flows: Vec<Flow>,
    /// What flows of requests carry.
    pub requests: Vec<Kind>,
    /// Cores that virtual CPUs share.
    pub cores: Vec<Core>,
    pub receivers: Receivers,
    pub warm_up_ns: u64,
    pub measured_ns: u64,
    /// Equal parts of the measured time.
    pub phases: u32,
    pub window_every_us: Option<u64>,
    pub goodput_every_us: Option<u64>,
    pub watch: Watch,
    /// Share of what the bottleneck can carry that a valid run reaches; 0 asks for nothing.
    pub goodput_floor: f64,
    /// Frames for which a guest's ring has no room do not invalidate a run.
    pub ring_overflows: bool,
    /// Virtual time only.
    pub chaos: Chaos,
}

const ETHERNET_HEADER_BYTES: u64 = 14;

impl Scenario {
    pub fn measured_s(&self) -> f64 {
        self.measured_ns as f64 / 1e9
    }

    /// The most payload that full frames can bring through the bottleneck besides the probes.
    /// Headers are Ethernet (without preamble, which the emulated links do not send), IP, and TCP
    /// with timestamps.
    pub fn goodput_ceiling_bps(&self) -> f64 {
        let header_bytes = match self.family {
            Family::Ipv4 => 20 + 32,
            Family::Ipv6 => 40 + 32,
        };
        let mtu_bytes = u64::from(self.network.mtu_bytes);
        let frame_bytes = ETHERNET_HEADER_BYTES + mtu_bytes;
        let payload = (mtu_bytes - header_bytes) as f64 / frame_bytes as f64;
        let probes_bps = self
            .watch
            .probe_every_us
            .map_or(0.0, |every_us| PROBE_BYTES as f64 * 8.0 * 1e6 / every_us as f64);
        (self.network.rate_bps as f64 - probes_bps) * payload
    }

    /// The facts by which results are measured and judged. `groups` are the names of the groups of
    /// flows, in the order of their numbers.
    pub fn facts(&self, groups: &[&str]) -> RunFacts {
        let topology = self.topology();
        let flows = self.flows.iter().map(|flow| {
            let guest = &self.guests[flow.sender];
            let vcc_answers = self.translation_of(flow.receiver).is_some_and(Translation::enforces);
            let (asks, answers) = (flow.sender, flow.receiver);
            FlowFacts {
                group: groups[flow.group].into(),
                sender: flow.sender,
                data: match flow.pattern {
                    Pattern::Requests(_) => [answers, asks],
                    _ => [asks, answers],
                },
                is_bulk: flow.pattern == Pattern::Bulk,
                phases: flow.phases.clone(),
                crosses_bottleneck: topology.crosses_bottleneck(flow.sender, flow.receiver),
                ecn: Ecn {
                    guest: guest.ecn,
                    peer: (!vcc_answers).then(|| guest.fabric_ecn() && self.ecn_of(flow.receiver)),
                    fabric: guest.cheat.is_none().then(|| guest.fabric_ecn()),
                },
            }
        });
        RunFacts {
            measured_s: self.measured_s(),
            phases: self.phases,
            goodput_ceiling_bps: self.goodput_ceiling_bps(),
            goodput_floor: self.goodput_floor,
            ring_overflows: self.ring_overflows,
            flows: flows.collect(),
        }
    }

    pub fn topology(&self) -> Topology {
        match self.watch.probe_every_us {
            Some(_) => self.network.build_probed(),
            None => self.network.build(),
        }
    }

    /// Whether a host takes part in ECN where the other end asks for it.
    pub fn ecn_of(&self, host: HostId) -> bool {
        self.guests.get(host).map_or(self.receivers.ecn, |guest| guest.ecn)
    }

    pub fn translation_of(&self, host: HostId) -> Option<&Translation> {
        let guest = self.guests.get(host).map(|guest| &guest.translation);
        guest.unwrap_or(&self.receivers.translation).as_ref()
    }

    /// The first flow that the host sends.
    pub fn first_flow_of(&self, host: HostId) -> Option<usize> {
        self.flows.iter().position(|flow| flow.sender == host)
    }

    /// The hosts with vcc on their ports.
    pub fn translations(&self, topology: &Topology) -> Vec<(HostId, &Translation)> {
        let hosts = 0..topology.receivers.end;
        hosts.filter_map(|host| Some((host, self.translation_of(host)?))).collect()
    }

    pub fn hosts(&self, topology: &Topology) -> Vec<HostSpec> {
        let senders = self.guests.iter().enumerate().map(|(host, guest)| HostSpec {
            ecn: guest.ecn,
            accecn: guest.accecn,
            sack: self.sack,
            tcp: guest.tcp,
            tso: guest.tso,
            small_queues: guest.small_queues,
            limits: guest.limits.clone(),
            proxy: guest.proxy.clone(),
            interrupt_every_ns: guest.interrupt_every_ns,
            receive_buffer_bytes: None,
            backlog_segs: 0,
            vcpu: guest.vcpu,
            cheat: self.cheat_of(host),
            peers: self.peers_of(host),
        });
        let receivers = topology.receivers.clone().map(|receiver| HostSpec {
            ecn: self.receivers.ecn,
            accecn: self.receivers.accecn,
            sack: self.sack,
            tcp: TcpSwitches::default(),
            tso: true,
            small_queues: true,
            limits: Limits::default(),
            proxy: None,
            interrupt_every_ns: self.receivers.interrupt_every_ns,
            receive_buffer_bytes: self.receivers.receive_buffer_bytes,
            backlog_segs: self.receivers.backlog_segs,
            vcpu: self.receivers.vcpu,
            cheat: self.cheat_of(receiver),
            peers: self.peers_of(receiver),
        });
        senders.chain(receivers).collect()
    }

    /// What a host does against the rules, for itself or for those that send to it.
    pub fn cheat_of(&self, host: HostId) -> Option<&'static Cheat> {
        let at = |guest: HostId, end| self.guests.get(guest)?.cheat.filter(|it| it.end == end);
        let senders = self.flows.iter().filter(|flow| flow.receiver == host);
        let for_sender = senders.map(|flow| at(flow.sender, End::Receiver));
        at(host, End::Sender).or_else(|| for_sender.flatten().next())
    }

    fn peers_of(&self, host: HostId) -> Vec<HostId> {
        let mut peers: Vec<HostId> = Vec::new();
        for flow in &self.flows {
            let peer = match host {
                _ if host == flow.sender => flow.receiver,
                _ if host == flow.receiver => flow.sender,
                _ => continue,
            };
            if !peers.contains(&peer) {
                peers.push(peer);
            }
        }
        peers
    }

    pub fn plan(&self, seed: u64) -> Plan {
        let mut plan = Plan {
            flows: Vec::new(),
            warm_up_ns: self.warm_up_ns,
            measured_ns: self.measured_ns,
            phases: self.phases,
            windows_every_us: self.window_every_us,
            received_every_us: self.goodput_every_us,
            seed,
        };
        let flows = self.flows.iter().map(|flow| {
            let guest = &self.guests[flow.sender];
            // A response is data of the receiver's.
            let at_receiver = match flow.pattern {
                Pattern::Requests(_) => self.guests.get(flow.receiver).unwrap_or(guest),
                _ => guest,
            };
            FlowSpec {
                sender: flow.sender,
                receiver: flow.receiver,
                pattern: flow.pattern,
                congestion_control: guest.congestion_control.clone(),
                congestion_control_at_receiver: at_receiver.congestion_control.clone(),
                is_proxied: guest.proxy.is_some(),
                has_route_cwnd: guest.limits.cwnd_segs.is_some(),
                joins_at_ns: bound_ns(&plan, flow.phases.start, 0),
                leaves_at_ns: bound_ns(&plan, flow.phases.end, self.phases),
            }
        });
        plan.flows = flows.collect();
        plan
    }
}

/// None at the bound where all flows are.
fn bound_ns(plan: &Plan, bound: u32, usual: u32) -> Option<u64> {
    (bound != usual).then(|| plan.bound_ns(bound.into()))
}
