//! One host to be made.

use super::parameters::TcpSwitches;
use super::vcpu::Vcpu;
use crate::cheats::Cheat;
use serde::{Deserialize, Serialize};
use vcc_fabric::HostId;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostForm {
    #[default]
    Veth,
    Tap,
}

#[derive(Debug, Clone)]
pub struct HostSpec {
    pub ecn: bool,
    /// Linux 7.2, which asks for AccECN and accepts it.
    pub accecn: bool,
    pub sack: bool,
    pub tcp: TcpSwitches,
    /// Whether the guest hands super-segments to its device, as Linux does by default.
    pub tso: bool,
    /// Whether its TCP waits for what it has sent to have left its device, as Linux does.
    pub small_queues: bool,
    pub limits: Limits,
    /// The congestion control of the TCP proxy in its way, if there is one.
    pub proxy: Option<String>,
    /// Least time between two interrupts of its card, if not the usual one.
    pub interrupt_every_ns: Option<u64>,
    pub receive_buffer_bytes: Option<u32>,
    /// Frames that its driver domain keeps while its ring is full.
    pub backlog_segs: u32,
    /// The core that it shares.
    pub vcpu: Option<Vcpu>,
    /// What it does to its segments against the rules.
    pub cheat: Option<&'static Cheat>,
    /// Hosts that it talks to.
    pub peers: Vec<HostId>,
}

/// Limits of a guest's TCP besides its congestion control.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Limits {
    /// Rate limit at the guest's port, Ethernet headers included; set by the hypervisor.
    pub rate_bps: Option<u64>,
    /// snd_cwnd_clamp; the guest's own.
    pub cwnd_segs: Option<u32>,
    /// The initial window; the guest's own.
    pub initial_segs: Option<u32>,
    /// The least RTO (RFC 6298, 2.4); the guest's own.
    pub rto_min_ms: Option<u32>,
}

impl Limits {
    /// Whether the guest's routes say how large its windows are.
    pub fn has_route(&self) -> bool {
        self.cwnd_segs.is_some() || self.initial_segs.is_some()
    }
}
