//! One case of an experiment, resolved: everything that a run needs to be made.

use crate::fabric::{NetworkSpec, Topology, Watch};
use crate::hosts::{Family, HostForm, HostSpec};
use crate::traffic::{FlowSpec, Plan};
use crate::translate::Translation;

/// A sender with its flow.
#[derive(Debug, Clone)]
pub struct Guest {
    pub group: usize,
    pub ecn: bool,
    pub tso: bool,
    pub congestion_control: String,
    pub translation: Option<Translation>,
}

impl Guest {
    /// Whether the fabric sees ECN from it.
    pub fn fabric_ecn(&self) -> bool {
        self.ecn || self.translation.as_ref().is_some_and(Translation::gives_ecn)
    }
}

#[derive(Debug, Clone)]
pub struct Scenario {
    pub network: NetworkSpec,
    pub form: HostForm,
    pub family: Family,
    pub sack: bool,
    pub guests: Vec<Guest>,
    pub warm_up_ns: u64,
    pub measured_ns: u64,
    pub window_every_us: Option<u64>,
    pub watch: Watch,
    /// Share of what the bottleneck can carry that a valid run reaches; 0 asks for nothing.
    pub goodput_floor: f64,
}

const ETHERNET_FRAME_BYTES: u64 = 1514;

impl Scenario {
    pub fn measured_s(&self) -> f64 {
        self.measured_ns as f64 / 1e9
    }

    /// The most payload that full frames can bring through the bottleneck. Headers are Ethernet
    /// (without preamble, which the emulated links do not send), IP, and TCP with timestamps.
    pub fn goodput_ceiling_bps(&self) -> f64 {
        let header_bytes = match self.family {
            Family::Ipv4 => 14 + 20 + 32,
            Family::Ipv6 => 14 + 40 + 32,
        };
        let payload = (ETHERNET_FRAME_BYTES - header_bytes) as f64 / ETHERNET_FRAME_BYTES as f64;
        self.network.rate_bps as f64 * payload
    }

    pub(super) fn hosts(&self, topology: &Topology) -> Vec<HostSpec> {
        let senders = self.guests.iter().zip(&topology.peers).map(|(guest, &peer)| HostSpec {
            ecn: guest.ecn,
            sack: self.sack,
            tso: guest.tso,
            peers: vec![peer],
        });
        // A plain receiver takes part in whatever the sender's side asks for.
        let receivers = topology.receivers.iter().map(|receiver| HostSpec {
            ecn: true,
            sack: self.sack,
            tso: true,
            peers: (0..self.guests.len()).filter(|&i| topology.peers[i] == *receiver).collect(),
        });
        senders.chain(receivers).collect()
    }

    pub(super) fn plan(&self, topology: &Topology, seed: u64) -> Plan {
        let flows = self.guests.iter().zip(&topology.peers).enumerate();
        Plan {
            flows: flows
                .map(|(sender, (guest, &receiver))| FlowSpec {
                    sender,
                    receiver,
                    congestion_control: guest.congestion_control.clone(),
                })
                .collect(),
            warm_up_ns: self.warm_up_ns,
            measured_ns: self.measured_ns,
            sample_every_us: self.window_every_us,
            seed,
        }
    }
}
