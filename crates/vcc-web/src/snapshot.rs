//! All that is shown, as it was at one moment.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::Serialize;
pub use vcc_engine::Stage;

#[derive(Clone, Debug)]
pub struct Snapshot {
    pub at: SystemTime,
    pub daemon: Daemon,
    /// Which edition of the policy holds; 0: none.
    pub epoch: u32,
    pub ports: Vec<Port>,
    /// In the policy's order, the default's last. Empty where ports have no policy.
    pub rules: Vec<Rule>,
    pub pools: Vec<Pool>,
    pub flows: Vec<Flow>,
}

/// What the daemon knows of itself.
#[derive(Clone, Debug, Default)]
pub struct Daemon {
    pub version: String,
    /// Since 1970. Of a clock that may be set, unlike that of `uptime`.
    pub started: Duration,
    pub uptime: Duration,
    pub reloads_ok: u64,
    pub reloads_failed: u64,
    pub last_reload: Option<Reload>,
    /// How often attaching to a device failed.
    pub attach_failures: u64,
    /// What came by the control socket and was refused.
    pub control_refused: u64,
    /// What the operator has to mend, for as long as it is so; a reload that failed is not among it.
    pub problems: Vec<Problem>,
    /// What happened lately, the latest last.
    pub events: Vec<Event>,
}

#[derive(Clone, Debug)]
pub struct Reload {
    pub at: SystemTime,
    /// What was wrong; the policy before still holds.
    pub failure: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// A device, `policy`, or what else it is about.
    pub about: String,
    /// What happened, and what to do.
    pub what: String,
}

#[derive(Clone, Debug)]
pub struct Event {
    pub at: SystemTime,
    pub what: String,
}

#[derive(Clone, Debug)]
pub struct Port {
    pub device: String,
    pub tenant: Option<String>,
    /// Among the policy's ports; None where it was attached without one.
    pub index: Option<u32>,
    pub max_flows: u32,
    pub counters: Vec<Counter>,
    /// Why it could not be read: then it has neither counters nor flows.
    pub failure: Option<String>,
}

/// Segments that were not translated, for one reason.
#[derive(Clone, Debug, Serialize)]
pub struct Counter {
    pub name: &'static str,
    pub meaning: &'static str,
    pub value: u64,
}

#[derive(Clone, Debug)]
pub struct Rule {
    pub name: Arc<str>,
    pub mode: String,
    pub underlay: String,
    /// Of the edition that holds.
    pub ended: Totals,
}

/// What the kernel has added up for a rule since its edition came into force.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// That came under it, those that still live included.
    pub connections: u64,
    /// The rest is of those that have ended.
    pub counts: Counts,
}

/// What is counted of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub marks: u64,
    pub reductions: u64,
    pub retransmissions: u64,
    pub drops: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct Pool {
    pub name: String,
    /// None: no rule refers to it any more, but connections still hold some of it.
    pub window_bytes: Option<u32>,
    pub held_bytes: u32,
    pub idle_bytes: u32,
    pub weight: u32,
    pub most_held_bytes: u32,
    pub overdrawn: u32,
}

/// One connection at one port.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Its index among the snapshot's ports.
    pub port: usize,
    /// None where the port has no policy, or the edition of its rule has gone.
    pub rule: Option<Arc<str>>,
    /// Whether that rule is of the edition that holds.
    pub is_current: bool,
    pub guest: SocketAddr,
    pub peer: SocketAddr,
    pub vlan: Option<u16>,
    pub stage: Stage,
    pub underlay: &'static str,
    /// What the guest negotiated, as far as it knows.
    pub ecn_guest: &'static str,
    /// What was negotiated between vcc and the peer.
    pub ecn_fabric: &'static str,
    /// Whether the far end is under vcc too and tells of marked bytes.
    pub feedback: &'static str,
    pub snd_una: u32,
    pub cwnd_segs: Option<u32>,
    /// None: not found yet.
    pub ssthresh_segs: Option<u32>,
    pub window_shown_bytes: Option<u32>,
    pub mss_bytes: u16,
    pub srtt_us: Option<u32>,
    pub alpha: Option<f64>,
    pub counts: Counts,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.marks += other.marks;
        self.reductions += other.reductions;
        self.retransmissions += other.retransmissions;
        self.drops += other.drops;
    }
}

impl Counts {
    /// What has come since `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        self.zip(before, u64::saturating_sub)
    }

    pub(crate) fn zip(self, other: Self, with: fn(u64, u64) -> u64) -> Self {
        Self {
            marks: with(self.marks, other.marks),
            reductions: with(self.reductions, other.reductions),
            retransmissions: with(self.retransmissions, other.retransmissions),
            drops: with(self.drops, other.drops),
        }
    }
}
