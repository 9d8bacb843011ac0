//! Everything that is shown, as of one moment.

use std::time::{Duration, SystemTime};

use serde::Serialize;
use vcc_view::{FlowView, PortView, RuleView};

#[derive(Clone)]
pub struct Snapshot {
    pub at: SystemTime,
    pub daemon: Daemon,
    /// The edition of the policy in force; 0: none.
    pub epoch: u32,
    pub ports: Vec<PortView>,
    /// In the policy's order, the default last. Empty without a policy.
    pub rules: Vec<RuleView>,
    pub pools: Vec<Pool>,
    pub flows: Vec<FlowView>,
    /// The kernel's memory of the tables of all ports; None without a port there.
    pub tables_bytes: Option<u64>,
}

/// The daemon's own state.
#[derive(Clone, Debug, Default)]
pub struct Daemon {
    pub version: String,
    /// Since 1970, by a clock that may be set; that of `uptime` may not.
    pub started: Duration,
    pub uptime: Duration,
    pub reloads_ok: u64,
    pub reloads_failed: u64,
    pub last_reload: Option<Reload>,
    /// The number of failed attempts to attach to a device.
    pub attach_failures: u64,
    /// Refused requests on the control socket.
    pub control_refused: u64,
    /// Present problems for the operator, other than a failed reload.
    pub problems: Vec<Problem>,
    /// What may hurt ports, and is not counted as a problem.
    pub warnings: Vec<Problem>,
    /// Recent events, the latest last.
    pub events: Vec<Event>,
    /// None if connections are not recorded.
    pub records: Option<Records>,
}

/// The records of connections since the daemon began.
#[derive(Clone, Debug, Serialize)]
pub struct Records {
    /// The file, or `stdout`.
    pub target: String,
    pub written: u64,
    /// That could not be written.
    pub lost: u64,
    /// Why none can be written now, as on a full disk.
    pub failure: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Reload {
    pub at: SystemTime,
    /// Why it failed: then the previous policy stays in force.
    pub failure: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// A device, `policy`, or another subject.
    pub about: String,
    /// The problem and its remedy.
    pub what: String,
}

#[derive(Clone, Debug)]
pub struct Event {
    pub at: SystemTime,
    pub what: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct Pool {
    pub name: String,
    /// The port of `vcc domain` whose connections share it; None: those of all ports in the kernel.
    pub port: Option<String>,
    /// None: no rule refers to it any more, but connections still hold some of it.
    pub window_bytes: Option<u32>,
    pub held_bytes: u32,
    pub idle_bytes: u32,
    pub weight: u32,
    pub most_held_bytes: u32,
    pub overdrawn: u32,
}
