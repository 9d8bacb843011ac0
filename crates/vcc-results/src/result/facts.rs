//! The facts of a run by which its results are measured and judged.

use std::ops::Range;
use vcc_fabric::HostId;

#[derive(Debug, Clone, PartialEq)]
pub struct RunFacts {
    pub measured_s: f64,
    /// Equal parts of the measured time.
    pub phases: u32,
    /// The most payload that full frames can bring through the bottleneck.
    pub goodput_ceiling_bps: f64,
    /// Share of the ceiling that a valid run reaches; 0 accepts any.
    pub goodput_floor: f64,
    /// Frames for which a guest's ring has no room are a result of the run.
    pub ring_overflows: bool,
    /// In the order of [`RunData::flows`](super::RunData).
    pub flows: Vec<FlowFacts>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct FlowFacts {
    /// Name of its group.
    pub group: String,
    pub sender: HostId,
    /// The hosts that most of its data leaves and reaches: of requests, from the responses' end.
    pub data: [HostId; 2],
    /// Sends as much as its window allows, all the time.
    pub is_bulk: bool,
    /// In which it sends; 0 is the first.
    pub phases: Range<u32>,
    pub crosses_bottleneck: bool,
    pub ecn: Ecn,
}

/// Expected ECN of a flow: the run is valid only if each sees what is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ecn {
    pub guest: bool,
    /// None where vcc translates ECN at the receiver: what its own TCP believes is vcc's choice
    /// then.
    pub peer: Option<bool>,
    /// None where a guest that cheats has its data leave in disguise.
    pub fabric: Option<bool>,
}

impl RunFacts {
    pub fn phase_s(&self) -> f64 {
        self.measured_s / f64::from(self.phases)
    }

    /// The part of the measured time in which a flow sends.
    pub fn active_s(&self, flow: &FlowFacts) -> f64 {
        flow.phases.len() as f64 * self.phase_s()
    }
}
