//! The `vcc` table of a guest, in vcc's own names.

use super::bounded::{Bytes, Mbps, PoolWeight, Segs, Share};
use serde::Deserialize;

/// What is left out is as vcc has it by default. Which underlays there are, and which of these they
/// take, only vcc knows: it is asked when the experiment is run.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Vcc {
    pub mode: VccMode,
    pub underlay: Option<String>,
    /// Treatment of a guest that negotiates ECN itself.
    pub guest_ecn: Option<String>,
    /// Reduce the window by RFC 6937 instead of at once.
    pub prr: Option<bool>,
    /// Take a reduction back where DSACK says that nothing was lost.
    pub undo: Option<bool>,
    /// Set PSH as a native sender of the underlay's bursts would.
    pub pace_push: Option<bool>,
    /// Priority of the flow: 1 is the highest (AC/DC, 3.4).
    pub beta: Option<Share>,
    /// The window, and with it the throughput, is to be no more than this.
    pub cap_bytes: Option<Bytes>,
    pub cap_mbps: Option<Mbps>,
    /// Drop what exceeds the window (AC/DC, 3.3).
    pub police: Option<bool>,
    /// No window that the guest is shown is smaller.
    pub floor_segs: Option<Segs>,
    /// Tell the other end's vcc which bytes arrived marked (AC/DC, 3.2).
    pub feedback: Option<bool>,
    /// The pool in which it shares a window (vCC, 4), and how much it gets beside others.
    pub pool: Option<String>,
    pub weight: Option<PoolWeight>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VccMode {
    #[default]
    Off,
    Enforce,
    Shadow,
}
