//! A small run, and what a sound one could have measured, for tests that run nothing.

use super::{Ecn, EmulatorReport, FlowFacts, FlowResult, Lateness, RunData, RunFacts};
use std::collections::BTreeMap;
use vcc_fabric::{Ect, ProbeReport};

/// A bulk flow of the first guest, in the only phase.
pub fn flow() -> FlowFacts {
    FlowFacts {
        group: "one".into(),
        sender: 0,
        data: [0, 1],
        is_bulk: true,
        phases: 0..1,
        crosses_bottleneck: true,
        ecn: Ecn { guest: true, peer: Some(true), fabric: Some(true) },
    }
}

/// One guest with ECN for one second through 10 Mbit/s, of which full frames of MTU 1500 bring
/// 9.564 Mbit/s.
pub fn facts() -> RunFacts {
    RunFacts {
        measured_s: 1.0,
        phases: 1,
        goodput_ceiling_bps: 10_000_000.0 * 1448.0 / 1514.0,
        goodput_floor: 0.98,
        ring_overflows: false,
        flows: vec![flow()],
    }
}

/// A run at exactly 99 % of that.
pub fn data() -> RunData {
    RunData {
        flows: vec![FlowResult {
            guest_has_ecn: true,
            peer_has_ecn: true,
            payload_ok: true,
            received_at_bounds_bytes: vec![100, 100 + (9_564_068.0 * 0.99 / 8.0) as u64],
            ..FlowResult::default()
        }],
        emulator: EmulatorReport {
            links: Vec::new(),
            ack_gaps_us: Vec::new(),
            probes: ProbeReport::default(),
            ect: vec![Ect { capable: 900, not_capable: 3 }],
            lateness: Lateness::default(),
            failures: 0,
            not_realtime: None,
        },
        bottleneck: 0,
        lost_frames: 0,
        pings: Vec::new(),
        tcp: BTreeMap::new(),
        translated: Vec::new(),
        pools: Vec::new(),
        frame_log: None,
    }
}
