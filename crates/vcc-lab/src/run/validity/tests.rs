use super::super::Guest;
use super::*;
use crate::emulator::{EmulatorReport, Lateness};
use crate::fabric::{AnyQueue, NetworkSpec, TopologyKind, Watch};
use crate::hosts::{Family, HostForm};
use crate::traffic::FlowResult;

fn scenario() -> Scenario {
    let guest = Guest {
        group: 0,
        ecn: true,
        tso: true,
        congestion_control: "reno".into(),
        translation: None,
    };
    Scenario {
        network: NetworkSpec {
            topology: TopologyKind::Star,
            senders: 1,
            rate_bps: 10_000_000,
            edge_rate_bps: 10_000_000,
            delay_ns: 0,
            queue: AnyQueue::edge(),
        },
        form: HostForm::Veth,
        family: Family::Ipv4,
        sack: false,
        guests: vec![guest],
        warm_up_ns: 0,
        measured_ns: 1_000_000_000,
        window_every_us: None,
        watch: Watch::default(),
        goodput_floor: 0.98,
    }
}

/// A run at exactly 99 % of the 9.564 Mbit/s that full frames of MTU 1500 bring.
fn data() -> RunData {
    RunData {
        flows: vec![FlowResult {
            guest_has_ecn: true,
            peer_has_ecn: true,
            payload_ok: true,
            received_bytes: (9_564_068.0 * 0.99 / 8.0) as u64,
            retransmitted_segs: 0,
            retransmitted_bytes: 0,
            sent_segs: 0,
            samples: Vec::new(),
        }],
        emulator: EmulatorReport {
            links: Vec::new(),
            ack_gaps_us: Vec::new(),
            lateness: Lateness::default(),
            failures: 0,
            not_realtime: None,
        },
        bottleneck: 0,
        lost_frames: 0,
        translated: Vec::new(),
    }
}

fn only_reason(spoil: impl FnOnce(&mut RunData)) -> String {
    let mut data = data();
    spoil(&mut data);
    let mut reasons = judge(&scenario(), &data).reasons;
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    reasons.remove(0)
}

#[test]
fn a_clean_run_counts() {
    let judgement = judge(&scenario(), &data());
    assert!(judgement.reasons.is_empty() && judgement.warnings.is_empty());
}

#[test]
fn each_fault_is_named() {
    let low = only_reason(|data| data.flows[0].received_bytes = 1_000_000);
    assert!(low.starts_with("goodput is 83.6 % "), "{low}");
    assert!(only_reason(|data| data.emulator.failures = 3).starts_with("3 frames"));
    assert!(only_reason(|data| data.lost_frames = 2).contains("outside the emulated queues"));
    assert!(only_reason(|data| data.flows[0].payload_ok = false).contains("payload"));
    let ecn = only_reason(|data| data.flows[0].guest_has_ecn = false);
    assert_eq!(ecn, "flow 1: the guest runs without ECN, not with");
    let late = only_reason(|data| (0..100).for_each(|_| data.emulator.lateness.note(600_000)));
    assert!(late.contains("600 us late"), "{late}");
}

#[test]
fn want_of_real_time_is_a_warning_only() {
    let mut data = data();
    data.emulator.not_realtime = Some("Operation not permitted".into());
    let judgement = judge(&scenario(), &data);
    assert!(judgement.reasons.is_empty());
    assert!(judgement.warnings[0].contains("Operation not permitted"));
}
