//! Everything that one run of one scenario measured.

use super::{FlowResult, Lateness, Observation, PoolSeen};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use vcc_fabric::{Ect, HostId, LinkReport, ProbeReport, RttSample};
use vcc_traffic::TcpCounters;

pub struct RunData {
    pub flows: Vec<FlowResult>,
    pub emulator: EmulatorReport,
    /// Index of the bottleneck among the links.
    pub bottleneck: usize,
    /// Frames lost by devices, outside the emulated queues.
    pub lost_frames: u64,
    /// One entry for each guest that pings.
    pub pings: Vec<Pings>,
    /// By host, what the counters of its TCP grew by within the window of measurement. In virtual
    /// time only.
    pub tcp: BTreeMap<HostId, TcpCounters>,
    /// The ports' view of their flows, one entry per guest with vcc.
    pub translated: Vec<Observation>,
    pub pools: Vec<PoolSeen>,
    /// In virtual time: a digest of all frames and their times.
    pub frame_log: Option<FrameLog>,
}

/// Counters of the emulated network.
pub struct EmulatorReport {
    pub links: Vec<LinkReport>,
    pub ack_gaps_us: Vec<Vec<u32>>,
    pub probes: ProbeReport,
    /// By host.
    pub ect: Vec<Ect>,
    pub lateness: Lateness,
    /// Frames that could not be read from or written to a TAP.
    pub failures: u64,
    /// Why the thread has no real-time priority, if it has none.
    pub not_realtime: Option<String>,
}

/// A guest's pings (RFC 792, echo) to its receiver, with both hosts' stacks in them.
#[derive(Debug, Clone)]
pub struct Pings {
    /// Number of the guest.
    pub guest: usize,
    pub sent: u64,
    /// Answered pings.
    pub samples: Vec<RttSample>,
}

/// A digest of all frames that left or reached a guest, with the times at which they did.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FrameLog {
    #[serde(rename = "frame_log_frames")]
    pub frames: u64,
    /// In hexadecimal; equal runs have equal ones.
    #[serde(rename = "frame_log_hash")]
    pub hash: String,
}
