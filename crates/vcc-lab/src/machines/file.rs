//! The format of experiment files with `[machines]`.

use crate::experiment::bounded::Ms;
use crate::scenario::TcpSwitches;
use serde::Deserialize;
use vcc_qemu::Kernel;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tables {
    /// The presence of this table marks an experiment with virtual machines.
    pub machines: Machines,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machines {
    /// Turns of each virtual machine on the core.
    pub slice_ms: Ms,
    /// Virtual machines besides the one that is measured.
    pub neighbours: usize,
    /// Of the link to the peer, both ways.
    pub rate_mbps: u32,
    /// Of the link to the peer, without the guest's part.
    pub rtt_us: u32,
    /// The peer's initial window, if it is not its kernel's.
    #[serde(default)]
    pub peer_initial_window_segs: Option<u32>,
    /// Bytes of a transfer.
    pub sizes: Vec<u32>,
    /// Measures, in place of times, what the guest's port, at its tap or in `vcc domain`, reports about its
    /// connections.
    #[serde(default)]
    pub verdicts: Option<Verdicts>,
    /// Measures also what the guest's TCP counts while it sends.
    #[serde(default)]
    pub tcp_counters: bool,
    /// The metric that the figure shows.
    pub plot: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdicts {
    /// Requests of the peer to the guest on a connection, each of `ask_bytes`, which come back.
    pub asks: u32,
    pub ask_bytes: u32,
    /// The largest window of the peer, so that the guest fills no queue.
    pub peer_window_bytes: u32,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    pub card: CardKind,
    /// Options of `vcc domain`.
    #[serde(default)]
    pub options: String,
    /// The guest's congestion control, if it is not its kernel's.
    #[serde(default)]
    pub congestion_control: Option<String>,
    #[serde(default)]
    pub kernel: GuestKernel,
    /// The guest's, if it is not its kernel's.
    #[serde(default)]
    pub rto_min_ms: Option<Ms>,
    #[serde(default)]
    pub tcp: TcpSwitches,
    /// Its CUBIC leaves slow start without HyStart.
    #[serde(default)]
    pub without_hystart: bool,
    /// Without neighbours: the core is the guest's.
    #[serde(default)]
    pub alone: bool,
    /// Processes in the guest that compute without end.
    #[serde(default)]
    pub busy: u32,
    /// Others fill the link toward the peer up to this delay.
    #[serde(default)]
    pub queue_ms: u32,
    /// In place of those of all cases.
    #[serde(default)]
    pub sizes: Option<Vec<u32>>,
    /// The case that gains are over.
    #[serde(default)]
    pub against: Option<String>,
}

/// The kernel of a case's guest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
pub enum GuestKernel {
    #[default]
    #[serde(rename = "debian")]
    Debian,
    #[serde(rename = "pvtcp-6.12")]
    Pvtcp6_12,
    #[serde(rename = "pvtcp-7.3")]
    Pvtcp7_3,
}

impl From<GuestKernel> for Kernel {
    fn from(kernel: GuestKernel) -> Self {
        match kernel {
            GuestKernel::Debian => Self::Debian,
            GuestKernel::Pvtcp6_12 => Self::Pvtcp6_12,
            GuestKernel::Pvtcp7_3 => Self::Pvtcp7_3,
        }
    }
}

/// What the guest's card is connected to.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CardKind {
    /// A tap in the host's bridge.
    Tap,
    /// passt, which ends the guest's connections and opens its own.
    Passt,
    /// `vcc domain`.
    Domain,
}
