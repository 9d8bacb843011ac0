//! The path MTU: which ICMP messages are believed, and what is sent again for them.

use crate::common::*;
use crate::repair::{RTT_US, Shell, flight};
use vcc_engine::{PathMtu, RepairTimer, Retained, TooBig, sys};

const MTU_BYTES: u32 = 1000;
/// IPv4's and TCP's headers with timestamps.
const HEADERS_BYTES: u32 = 52;
const TEN_MINUTES_US: u64 = 10 * 60 * 1_000_000;

fn message(shell: &Shell) -> TooBig {
    let Conn { flow, now_us, .. } = shell.conn;
    TooBig { now_us, seq: flow.snd_una, mtu_bytes: MTU_BYTES, packet_bytes: 1500, ipv6: 0 }
}

fn hears(shell: &mut Shell, message: &TooBig) -> Option<PathMtu> {
    let mut path = PathMtu::default();
    let Shell { conn: Conn { flow, params, .. }, hold, recovery, .. } = shell;
    flow.pmtu_shrinks(hold, recovery, &mut path, params, message).then_some(path)
}

#[test]
fn what_is_too_large_leaves_again_without_a_reduction() {
    let mut shell = flight(linux_syn());
    let before = shell.conn.flow;
    let window_bytes = |shell: &Shell| shell.conn.flow.cc.cwnd_segs * shell.conn.mss();
    let before_bytes = window_bytes(&shell);
    let about = message(&shell);
    let path = hears(&mut shell, &about).expect("it is believed");
    assert_eq!(shell.conn.mss(), MTU_BYTES - HEADERS_BYTES);
    assert!((before_bytes - shell.conn.mss()..=before_bytes).contains(&window_bytes(&shell)));
    let limit_bytes = path.limit_bytes(shell.conn.now_us, HEADERS_BYTES);
    assert_eq!(limit_bytes, shell.conn.mss());
    shell.recovery.sacked(&mut shell.sent[3], before.0.progress_us);
    for facts in &mut shell.sent[1..] {
        let payload_bytes = facts.end.wrapping_sub(facts.seq);
        shell.recovery.lost_if_larger(facts, payload_bytes, payload_bytes);
        assert_eq!(facts.lost, 0);
        shell.recovery.lost_if_larger(facts, payload_bytes, limit_bytes);
    }
    assert_eq!(shell.sent[3].lost, 0, "it has arrived");
    // In smaller segments, as shells do: as many as the window admits, not one by one.
    let mut left_bytes = 0;
    for at in [1, 2, 4, 5, 6, 7, 8, 9, 10] {
        let whole = shell.sent[at];
        let middle = whole.seq.wrapping_add(limit_bytes);
        for (seq, end) in [(whole.seq, middle), (middle, whole.end)] {
            shell.sent[at] = Retained { seq, end, ..whole };
            if shell.leaves_bytes(at) > 0 {
                shell.resend(at);
                left_bytes += end.wrapping_sub(seq);
            }
        }
    }
    let flow = &shell.conn.flow;
    assert_eq!((u32::from(flow.ca_state), flow.reductions), (sys::CA_OPEN, before.reductions));
    let lost_bytes = 9 * (before_bytes / before.cc.cwnd_segs);
    assert!(left_bytes == lost_bytes || window_bytes(&shell) - left_bytes < limit_bytes);
}

/// A message may be later than half of the RTO, and what leaves for it takes a round trip.
#[test]
fn the_timers_start_anew() {
    let mut shell = flight(linux_syn().without(sys::OPT_SACK_PERMITTED));
    let (whole_us, timer) = shell.due().expect("a timer");
    assert_eq!(timer, RepairTimer::Timeout);
    shell.conn.wait_us(u64::from(whole_us) - 1);
    assert_eq!(shell.due(), Some((1, timer)));
    let about = message(&shell);
    assert!(hears(&mut shell, &about).is_some());
    assert_eq!(shell.due(), Some((whole_us, timer)));
    shell.conn.wait_us(RTT_US);
    shell.recovery.lost(&mut shell.sent[1]);
    shell.resend(1);
    assert_eq!(u32::from(shell.conn.flow.ca_state), sys::CA_OPEN, "no timeout");
}

#[test]
fn a_message_that_cannot_be_true_changes_nothing() {
    let mut shell = flight(linux_syn());
    let before = (shell.conn.flow.0, shell.recovery);
    let about = message(&shell);
    let least_bytes = shell.conn.mss() + HEADERS_BYTES;
    for wrong in [
        TooBig { seq: about.seq.wrapping_sub(1), ..about },
        TooBig { seq: shell.conn.flow.snd_nxt, ..about },
        TooBig { mtu_bytes: 575, ..about },
        TooBig { mtu_bytes: least_bytes, ..about },
        TooBig { mtu_bytes: 1500, packet_bytes: 0, ..about },
        TooBig { packet_bytes: MTU_BYTES, ..about },
        // IPv6 has a least MTU, and every message names an MTU.
        TooBig { mtu_bytes: 1279, ipv6: 1, ..about },
        TooBig { mtu_bytes: 0, ipv6: 1, ..about },
    ] {
        assert_eq!(hears(&mut shell, &wrong), None, "{wrong:?}");
        assert_eq!((shell.conn.flow.0, shell.recovery), before, "{wrong:?}");
    }
    for right in [TooBig { mtu_bytes: 1280, ipv6: 1, ..about }, TooBig { mtu_bytes: 0, ..about }] {
        assert!(hears(&mut shell, &right).is_some(), "{right:?}");
    }
    // By now nothing is larger.
    assert_eq!(hears(&mut shell, &about), None);
}

/// Whatever the clock's epoch.
#[test]
fn a_larger_mtu_is_tried_after_ten_minutes() {
    for learned_us in [0, u64::from(u32::MAX) * 1000 - 5, u64::from(u32::MAX) * 1000 + 999] {
        let path =
            PathMtu(sys::vcc_pmtu { mtu_bytes: 576, learned_ms: (learned_us / 1000) as u32 });
        let limit_bytes = |after_us| path.limit_bytes(learned_us / 1000 * 1000 + after_us, 40);
        assert_eq!(limit_bytes(0), 536);
        assert_eq!(limit_bytes(TEN_MINUTES_US - 1), 536);
        assert_eq!(limit_bytes(TEN_MINUTES_US), u32::MAX);
    }
    assert_eq!(PathMtu::default().limit_bytes(5, 40), u32::MAX);
}
