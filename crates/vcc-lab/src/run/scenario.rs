//! One case of an experiment, resolved: everything that a run needs to be made.

use crate::error::{Error, Result};
use crate::fabric::{HostId, NetworkSpec, PROBE_BYTES, Topology, Watch};
use crate::hosts::{Core, Family, HostForm, HostSpec, Limits, Vcpu};
use crate::traffic::{FlowSpec, Pattern, Plan};
use crate::translate::Translation;
use std::ops::Range;

/// A host with a guest.
#[derive(Debug, Clone)]
pub struct Guest {
    pub ecn: bool,
    pub tso: bool,
    /// Its TCP waits for what it has sent to have left its card.
    pub small_queues: bool,
    /// By the kernel's name for it.
    pub congestion_control: String,
    pub limits: Limits,
    /// The congestion control of the TCP proxy in its way, if there is one.
    pub proxy: Option<String>,
    /// How often it pings its receiver.
    pub ping_every_us: Option<u64>,
    /// How often its card interrupts it at the most, if not as often as others do.
    pub interrupt_every_ns: Option<u64>,
    /// The core that it shares.
    pub vcpu: Option<Vcpu>,
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

/// What one guest sends to another, or to a receiver.
#[derive(Debug, Clone)]
pub struct Flow {
    pub group: usize,
    pub sender: HostId,
    pub receiver: HostId,
    pub pattern: Pattern,
    /// Of messages, which of the applications of the sender's group sends them; else 0.
    pub worker: u32,
    /// In which it is there; 0 is the first.
    pub phases: Range<u32>,
}

impl Flow {
    /// How much of the measured time it is there.
    pub fn active_s(&self, scenario: &Scenario) -> f64 {
        self.phases.len() as f64 * scenario.phase_s()
    }
}

/// The hosts without a guest; all are alike.
#[derive(Debug, Clone)]
pub struct Receivers {
    /// Whether they take part in ECN where the other end asks for it.
    pub ecn: bool,
    /// As a guest's.
    pub interrupt_every_ns: Option<u64>,
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
    /// Those that virtual CPUs share.
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
}

const ETHERNET_HEADER_BYTES: u64 = 14;

impl Scenario {
    pub fn measured_s(&self) -> f64 {
        self.measured_ns as f64 / 1e9
    }

    pub fn phase_s(&self) -> f64 {
        self.measured_s() / f64::from(self.phases)
    }

    /// The most payload that full frames can bring through the bottleneck beside the probes.
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

    /// Whether real time can have it.
    pub(crate) fn check_live(&self) -> Result<()> {
        let cannot = |what| Err(Error::VirtualOnly { what });
        let hosts = self.hosts(&self.topology());
        if hosts.iter().any(|host| host.vcpu.is_some()) {
            return cannot("cores that guests share");
        }
        if hosts.iter().any(|host| host.interrupt_every_ns.is_some()) {
            return cannot("interrupts of guests' cards");
        }
        if self.guests.iter().any(|guest| guest.ping_every_us.is_some()) {
            return cannot("pings of guests");
        }
        if self.guests.iter().any(|guest| !guest.small_queues) {
            return cannot("guests without small queues");
        }
        if self.flows.iter().any(|flow| matches!(flow.pattern, Pattern::Transfers(_))) {
            return cannot("transfers over connections of their own");
        }
        if self.flows.iter().any(|flow| matches!(flow.pattern, Pattern::Messages(_))) {
            return cannot("messages of workers");
        }
        Ok(())
    }

    pub(crate) fn topology(&self) -> Topology {
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
    pub(crate) fn first_flow_of(&self, host: HostId) -> Option<usize> {
        self.flows.iter().position(|flow| flow.sender == host)
    }

    /// The hosts with vcc on their ports.
    pub(crate) fn translations(&self, topology: &Topology) -> Vec<(HostId, &Translation)> {
        let hosts = 0..topology.receivers.end;
        hosts.filter_map(|host| Some((host, self.translation_of(host)?))).collect()
    }

    pub(crate) fn hosts(&self, topology: &Topology) -> Vec<HostSpec> {
        let senders = self.guests.iter().enumerate().map(|(host, guest)| HostSpec {
            ecn: guest.ecn,
            sack: self.sack,
            tso: guest.tso,
            small_queues: guest.small_queues,
            limits: guest.limits.clone(),
            proxy: guest.proxy.clone(),
            interrupt_every_ns: guest.interrupt_every_ns,
            vcpu: guest.vcpu,
            peers: self.peers_of(host),
        });
        let receivers = topology.receivers.clone().map(|receiver| HostSpec {
            ecn: self.receivers.ecn,
            sack: self.sack,
            tso: true,
            small_queues: true,
            limits: Limits::default(),
            proxy: None,
            interrupt_every_ns: self.receivers.interrupt_every_ns,
            vcpu: self.receivers.vcpu,
            peers: self.peers_of(receiver),
        });
        senders.chain(receivers).collect()
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

    pub(crate) fn plan(&self, seed: u64) -> Plan {
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
            FlowSpec {
                sender: flow.sender,
                receiver: flow.receiver,
                pattern: flow.pattern,
                congestion_control: guest.congestion_control.clone(),
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
