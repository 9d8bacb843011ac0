use super::*;
use crate::result::FrameLog;
use crate::result::made::{data, facts};

fn only_reason(spoil: impl FnOnce(&mut RunData)) -> String {
    let mut data = data();
    spoil(&mut data);
    let mut reasons = validate(&facts(), &data).reasons;
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    reasons.remove(0)
}

#[test]
fn a_clean_run_counts() {
    let validity = validate(&facts(), &data());
    assert!(validity.reasons.is_empty() && validity.warnings.is_empty());
}

#[test]
fn each_fault_is_named() {
    let low = only_reason(|data| data.flows[0].received_at_bounds_bytes[1] = 1_000_100);
    assert!(low.starts_with("goodput is 83.6 % "), "{low}");
    assert!(only_reason(|data| data.emulator.failures = 3).starts_with("3 frames"));
    assert!(only_reason(|data| data.lost_frames = 2).contains("outside the emulated queues"));
    let ring = only_reason(|data| {
        data.lost_frames = 2;
        data.frame_log = Some(FrameLog { frames: 1, hash: "0".into() });
    });
    assert!(ring.starts_with("2 frames found no room in the ring"), "{ring}");
    let meant = RunFacts { ring_overflows: true, ..facts() };
    let overflown = RunData {
        lost_frames: 2,
        frame_log: Some(FrameLog { frames: 1, hash: "0".into() }),
        ..data()
    };
    assert!(validate(&meant, &overflown).reasons.is_empty());
    assert!(only_reason(|data| data.flows[0].payload_ok = false).contains("payload"));
    let ecn = only_reason(|data| data.flows[0].guest_has_ecn = false);
    assert_eq!(ecn, "flow 1: the guest runs without ECN, not with");
    let fabric = only_reason(|data| data.emulator.ect[0].not_capable = 1000);
    assert_eq!(fabric, "flow 1: its data crosses the fabric without ECN, not with");
    let late = only_reason(|data| (0..100).for_each(|_| data.emulator.lateness.note(600_000)));
    assert!(late.contains("600 us late"), "{late}");
}

#[test]
fn want_of_real_time_is_a_warning_only() {
    let mut data = data();
    data.emulator.not_realtime = Some("Operation not permitted".into());
    let validity = validate(&facts(), &data);
    assert!(validity.reasons.is_empty());
    assert!(validity.warnings[0].contains("Operation not permitted"));
}
