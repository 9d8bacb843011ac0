//! One case of an experiment, resolved: everything that a run needs to be made.

use crate::error::{Error, Result};
use crate::fabric::{HostId, NetworkSpec, PROBE_BYTES, Topology, Watch};
use crate::hosts::{Core, Family, HostForm, HostSpec, Limits, Vcpu};
use crate::traffic::{FlowSpec, Pattern, Plan};
use crate::translate::Translation;
use std::ops::Range;

/// A sender with its flow.
#[derive(Debug, Clone)]
pub struct Guest {
    pub group: usize,
    pub pattern: Pattern,
    pub ecn: bool,
    pub tso: bool,
    /// By the kernel's name for it.
    pub congestion_control: String,
    pub limits: Limits,
    /// The congestion control of the TCP proxy in its way, if there is one.
    pub proxy: Option<String>,
    /// In which it sends; 0 is the first.
    pub phases: Range<u32>,
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

    /// How much of the measured time it sends.
    pub fn active_s(&self, scenario: &Scenario) -> f64 {
        self.phases.len() as f64 * scenario.phase_s()
    }
}

/// All receivers are alike.
#[derive(Debug, Clone)]
pub struct Receivers {
    /// Whether they take part in ECN where the other end asks for it.
    pub ecn: bool,
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

const ETHERNET_FRAME_BYTES: u64 = 1514;

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
            Family::Ipv4 => 14 + 20 + 32,
            Family::Ipv6 => 14 + 40 + 32,
        };
        let payload = (ETHERNET_FRAME_BYTES - header_bytes) as f64 / ETHERNET_FRAME_BYTES as f64;
        let probes_bps = self
            .watch
            .probe_every_us
            .map_or(0.0, |every_us| PROBE_BYTES as f64 * 8.0 * 1e6 / every_us as f64);
        (self.network.rate_bps as f64 - probes_bps) * payload
    }

    /// Whether real time can have it.
    pub(crate) fn check_live(&self) -> Result<()> {
        let cannot = |what| Err(Error::VirtualOnly { what });
        if self.hosts(&self.topology()).iter().any(|host| host.vcpu.is_some()) {
            return cannot("cores that guests share");
        }
        if self.guests.iter().any(|guest| matches!(guest.pattern, Pattern::Transfers(_))) {
            return cannot("transfers over connections of their own");
        }
        Ok(())
    }

    pub(crate) fn topology(&self) -> Topology {
        match self.watch.probe_every_us {
            Some(_) => self.network.build_probed(),
            None => self.network.build(),
        }
    }

    /// The hosts with vcc on their ports.
    pub(crate) fn translations(&self, topology: &Topology) -> Vec<(HostId, &Translation)> {
        let guests = self.guests.iter().map(|guest| &guest.translation).enumerate();
        let receivers = topology.receivers.iter().map(|&host| (host, &self.receivers.translation));
        let all = guests.chain(receivers);
        all.filter_map(|(host, translation)| Some((host, translation.as_ref()?))).collect()
    }

    pub(crate) fn hosts(&self, topology: &Topology) -> Vec<HostSpec> {
        let senders = self.guests.iter().zip(&topology.peers).map(|(guest, &peer)| HostSpec {
            ecn: guest.ecn,
            sack: self.sack,
            tso: guest.tso,
            limits: guest.limits.clone(),
            proxy: guest.proxy.clone(),
            vcpu: guest.vcpu,
            peers: vec![peer],
        });
        let receivers = topology.receivers.iter().map(|receiver| HostSpec {
            ecn: self.receivers.ecn,
            sack: self.sack,
            tso: true,
            limits: Limits::default(),
            proxy: None,
            vcpu: self.receivers.vcpu,
            peers: (0..self.guests.len()).filter(|&i| topology.peers[i] == *receiver).collect(),
        });
        senders.chain(receivers).collect()
    }

    pub(crate) fn plan(&self, topology: &Topology, seed: u64) -> Plan {
        let mut plan = Plan {
            flows: Vec::new(),
            warm_up_ns: self.warm_up_ns,
            measured_ns: self.measured_ns,
            phases: self.phases,
            windows_every_us: self.window_every_us,
            received_every_us: self.goodput_every_us,
            seed,
        };
        let flows = self.guests.iter().zip(&topology.peers).enumerate();
        let flows = flows.map(|(sender, (guest, &receiver))| FlowSpec {
            sender,
            receiver,
            pattern: guest.pattern,
            congestion_control: guest.congestion_control.clone(),
            is_proxied: guest.proxy.is_some(),
            has_route_cwnd: guest.limits.cwnd_segs.is_some(),
            joins_at_ns: bound_ns(&plan, guest.phases.start, 0),
            leaves_at_ns: bound_ns(&plan, guest.phases.end, self.phases),
        });
        plan.flows = flows.collect();
        plan
    }
}

/// None at the bound where all flows are.
fn bound_ns(plan: &Plan, bound: u32, usual: u32) -> Option<u64> {
    (bound != usual).then(|| plan.bound_ns(bound.into()))
}
