//! Groups of guests, and the receivers.

use super::vcpu::Vcpu;
use crate::cheats::Cheat;
use crate::experiment::bounded::{
    Count, DelayUs, IntervalUs, Kib, Mbps, ModerationUs, Ms, Segs, Workers,
};
use crate::scenario::TcpSwitches;
use crate::translation::Vcc;
use serde::Deserialize;
use vcc_traffic::Pattern;

/// Guests that are alike. Each has one flow where the file does not say who sends to whom.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    pub name: String,
    pub count: Count,
    pub ecn: bool,
    /// Runs Linux 7.2, which asks for AccECN (RFC 9768) and accepts it.
    #[serde(default)]
    pub accecn: bool,
    #[serde(default)]
    pub traffic: Pattern,
    /// One-way delay of the link between guest and switch; the network's if left out.
    #[serde(default)]
    pub edge_delay_us: Option<DelayUs>,
    #[serde(default = "reno")]
    pub congestion_control: String,
    #[serde(default = "yes")]
    pub tso: bool,
    /// TCP small queues, as in Linux since 3.6. Without them, the card's driver reports a buffer as
    /// sent as soon as the card has taken it.
    #[serde(default = "yes")]
    pub small_queues: bool,
    /// The hypervisor lets no more than this leave the guest's port.
    #[serde(default)]
    pub rate_limit_mbps: Option<Mbps>,
    /// A TCP proxy in the hypervisor ends the guest's connections and makes its own, with ECN and
    /// this congestion control.
    #[serde(default)]
    pub proxy: Option<String>,
    /// Interrupt moderation of its card; that of a card at 10 Gbit/s if left out.
    #[serde(default)]
    pub interrupt_us: Option<ModerationUs>,
    /// The guest lets its own window grow no larger.
    #[serde(default)]
    pub cwnd_clamp_segs: Option<Segs>,
    /// The guest's initial window; Linux has had 10 segments since 2.6.39 (RFC 6928).
    #[serde(default)]
    pub initial_window_segs: Option<Segs>,
    /// The guest's least retransmission timeout; Linux has 200 ms.
    #[serde(default)]
    pub rto_min_ms: Option<Ms>,
    #[serde(default)]
    pub tcp: TcpSwitches,
    /// With the papers' stack, where `tcp` leaves them out.
    #[serde(default)]
    pub newreno: TcpSwitches,
    /// In parallel with its flow, it pings its receiver about this often during the measurement.
    #[serde(default)]
    pub ping_every_us: Option<IntervalUs>,
    /// The first and the last phase in which it sends; all of them if left out.
    #[serde(default)]
    pub phases: Option<[u32; 2]>,
    /// The most requests that it works on; others wait.
    #[serde(default)]
    pub serves_at_once: Option<Workers>,
    /// The core that it shares; it has one of its own if left out.
    #[serde(default)]
    pub vcpu: Option<Vcpu>,
    /// What it does to its segments against the rules, or has its receiver do.
    #[serde(default)]
    pub cheat: Option<&'static Cheat>,
    #[serde(default)]
    pub vcc: Vcc,
}

fn reno() -> String {
    "reno".into()
}
fn yes() -> bool {
    true
}

/// The hosts that the guests send to.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Receivers {
    /// Take part in ECN where the sender asks for it.
    pub ecn: bool,
    /// Run Linux 7.2, which accepts AccECN (RFC 9768) where the sender asks for it.
    pub accecn: bool,
    /// Interrupt moderation of the receivers' cards.
    pub interrupt_us: Option<ModerationUs>,
    /// What a socket's receive buffer begins with, from which its window grows.
    pub receive_buffer_kib: Option<Kib>,
    /// Frames that the driver domain keeps for a receiver whose ring is full; none if left out.
    pub backlog_segs: Option<Segs>,
    /// The shared core of a receiver, which has a core of its own if left out.
    pub vcpu: Option<Vcpu>,
    pub vcc: Vcc,
}

impl Default for Receivers {
    fn default() -> Self {
        Self {
            ecn: true,
            accecn: false,
            interrupt_us: None,
            receive_buffer_kib: None,
            backlog_segs: None,
            vcpu: None,
            vcc: Vcc::default(),
        }
    }
}
