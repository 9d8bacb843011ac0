//! A small scenario, and what a sound run of it could have brought, for tests that run nothing.

use super::{Flow, Guest, Receivers, RunData, Scenario};
use crate::emulator::{EmulatorReport, Lateness};
use crate::fabric::{AnyQueue, Ect, NetworkSpec, ProbeReport, Tiers, TopologyKind, Watch};
use crate::hosts::{Family, HostForm, Limits};
use crate::traffic::{FlowResult, Pattern};

pub fn guest() -> Guest {
    Guest {
        ecn: true,
        tso: true,
        small_queues: true,
        congestion_control: "reno".into(),
        limits: Limits::default(),
        proxy: None,
        ping_every_us: None,
        interrupt_every_ns: None,
        vcpu: None,
        translation: None,
    }
}

/// Of the first guest, to the receiver of a star of one.
pub fn flow() -> Flow {
    Flow { group: 0, sender: 0, receiver: 1, pattern: Pattern::Bulk, worker: 0, phases: 0..1 }
}

/// One guest with ECN for one second through 10 Mbit/s.
pub fn scenario() -> Scenario {
    Scenario {
        network: NetworkSpec {
            topology: TopologyKind::Star,
            guests: 1,
            rate_bps: 10_000_000,
            edge_rate_bps: 10_000_000,
            delay_ns: 0,
            mtu_bytes: 1500,
            queue: AnyQueue::edge(),
            memory: None,
            busiest: 0,
            tiers: Tiers::default(),
        },
        form: HostForm::Veth,
        family: Family::Ipv4,
        sack: false,
        guests: vec![guest()],
        flows: vec![flow()],
        cores: Vec::new(),
        receivers: Receivers { ecn: true, interrupt_every_ns: None, vcpu: None, translation: None },
        warm_up_ns: 0,
        measured_ns: 1_000_000_000,
        phases: 1,
        window_every_us: None,
        goodput_every_us: None,
        watch: Watch::default(),
        goodput_floor: 0.98,
    }
}

/// A run at exactly 99 % of the 9.564 Mbit/s that full frames of MTU 1500 bring.
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
        translated: Vec::new(),
        pools: Vec::new(),
        frame_log: None,
    }
}
