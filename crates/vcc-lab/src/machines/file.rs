//! The format of experiment files with `[machines]`.

use crate::experiment::Ms;
use serde::Deserialize;
use std::collections::BTreeMap;
use vcc_results::report::Expectation;
use vcc_results::result::Schedule;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub id: String,
    pub title: String,
    pub paper: String,
    #[serde(default)]
    pub scale: Option<String>,
    pub duration: Duration,
    /// The presence of this table marks an experiment with virtual machines.
    pub machines: Machines,
    pub cases: Vec<Case>,
}

/// `measured_s` is the time of a case, in equal parts for each size and direction.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Duration {
    pub measured_s: f64,
    pub runs: u32,
    pub quick: Quick,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Quick {
    pub measured_s: f64,
    pub runs: u32,
}

impl Duration {
    pub fn schedule(&self, quick: bool) -> Schedule {
        let (measured_s, runs) = match quick {
            true => (self.quick.measured_s, self.quick.runs),
            false => (self.measured_s, self.runs),
        };
        Schedule { warm_up_s: 0.0, measured_s, runs }
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Machines {
    /// Turns of each virtual machine on the core.
    pub slice_ms: Ms,
    /// Virtual machines beside the one that is measured.
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
    /// The metric that the figure shows.
    pub plot: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    pub name: String,
    pub card: CardKind,
    /// Options of `vcc domain`.
    #[serde(default)]
    pub options: String,
    /// The guest's congestion control, if it is not its kernel's.
    #[serde(default)]
    pub congestion_control: Option<String>,
    /// Without neighbours: the core is the guest's.
    #[serde(default)]
    pub alone: bool,
    /// In place of those of all cases.
    #[serde(default)]
    pub sizes: Option<Vec<u32>>,
    /// The case that gains are over.
    #[serde(default)]
    pub against: Option<String>,
    #[serde(default)]
    pub expect: BTreeMap<String, Expectation>,
}

/// What the guest's card is connected to.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum CardKind {
    /// A tap in the host's bridge.
    Tap,
    /// passt, which ends the guest's connections and opens its own.
    Passt,
    /// `vcc domain`.
    Domain,
}
