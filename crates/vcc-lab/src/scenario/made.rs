//! A small scenario, for tests.

use super::{Chaos, Family, Flow, Guest, HostForm, Limits, Receivers, Scenario, TcpSwitches};
use std::collections::BTreeMap;
use vcc_fabric::{AnyQueue, NetworkSpec, Tiers, TopologyKind, Watch};
use vcc_traffic::Pattern;

pub fn guest() -> Guest {
    Guest {
        ecn: true,
        accecn: false,
        tso: true,
        small_queues: true,
        congestion_control: "reno".into(),
        limits: Limits::default(),
        tcp: TcpSwitches::default(),
        proxy: None,
        ping_every_us: None,
        interrupt_every_ns: None,
        serves_at_once: None,
        vcpu: None,
        cheat: None,
        translation: None,
    }
}

/// A flow of the first guest to the receiver of a star of one.
pub fn flow() -> Flow {
    Flow {
        group: 0,
        sender: 0,
        receiver: 1,
        pattern: Pattern::Bulk,
        worker: 0,
        asks: Vec::new(),
        phases: 0..1,
    }
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
            edge_delays_ns: BTreeMap::new(),
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
        requests: Vec::new(),
        cores: Vec::new(),
        receivers: Receivers {
            ecn: true,
            accecn: false,
            interrupt_every_ns: None,
            receive_buffer_bytes: None,
            backlog_segs: 0,
            vcpu: None,
            translation: None,
        },
        warm_up_ns: 0,
        measured_ns: 1_000_000_000,
        phases: 1,
        window_every_us: None,
        goodput_every_us: None,
        watch: Watch::default(),
        goodput_floor: 0.98,
        ring_overflows: false,
        chaos: Chaos::default(),
    }
}
