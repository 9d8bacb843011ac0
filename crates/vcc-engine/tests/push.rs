//! PSH where a sender with the underlay's cwnd would set it.

use crate::common::*;
use vcc_engine::{Params, sys};

/// A flow with bursts of `burst_segs`: half of cwnd, at least one.
fn with_burst(burst_segs: u32) -> Conn {
    let mut conn =
        Conn::established(params(|p| p.initial_window_segs = (2 * burst_segs).max(1)), 5);
    conn.peer_ack(0);
    conn
}

/// PSH on the guest's full segments after translation, given whether the guest sets it.
fn pushes(conn: &mut Conn, given: &[bool]) -> Vec<bool> {
    let mss_bytes = conn.mss();
    given
        .iter()
        .enumerate()
        .map(|(number, &push)| {
            let data = conn.data(number as u32 * mss_bytes, mss_bytes);
            let action = conn.guest_sends(if push { data.psh() } else { data });
            has_flags(&action, sys::TCP_PSH)
        })
        .collect()
}

/// The rule: position in the burst, by the segment's index since the last ACK. The window is two
/// bursts; only PSH at its end may be due to the window.
fn rule(index: usize, burst_segs: usize, given: bool) -> bool {
    let place = (index - 1) % burst_segs + 1;
    if burst_segs >= 2 && place == burst_segs {
        true
    } else if index > 1 && place == 1 && index >= 2 * burst_segs {
        false
    } else {
        given
    }
}

#[test]
fn bursts_of_one_to_three_segments() {
    // h = 1: all but the first of a burst lose PSH.
    assert_eq!(pushes(&mut with_burst(1), &[true; 4]), [true, false, false, false]);
    assert_eq!(pushes(&mut with_burst(1), &[false; 4]), [false; 4]);
    // h = 2: every second one has it.
    assert_eq!(pushes(&mut with_burst(2), &[false; 5]), [false, true, false, true, false]);
    assert_eq!(pushes(&mut with_burst(2), &[true; 5]), [true, true, true, true, false]);
    // h = 3: every third one has it, the one beyond the window loses it, the others keep theirs.
    assert_eq!(
        pushes(&mut with_burst(3), &[false; 7]),
        [false, false, true, false, false, true, false]
    );
    assert_eq!(pushes(&mut with_burst(3), &[true; 7]), [true, true, true, true, true, true, false]);
}

#[test]
fn the_rule_for_bursts_of_any_size() {
    for burst_segs in 1..20 {
        let mut bits: u64 = 0x9e37_79b9_7f4a_7c15;
        let given: Vec<bool> = (0..64)
            .map(|_| {
                bits = bits.rotate_left(7).wrapping_mul(5);
                bits & 1 == 1
            })
            .collect();
        let expected: Vec<bool> =
            given.iter().enumerate().map(|(at, &push)| rule(at + 1, burst_segs, push)).collect();
        assert_eq!(pushes(&mut with_burst(burst_segs as u32), &given), expected);
    }
}

#[test]
fn an_ack_starts_the_count_again() {
    let mut conn = with_burst(2);
    assert_eq!(pushes(&mut conn, &[false]), [false]);
    conn.peer_ack_segs(1);
    let burst_segs = (conn.cwnd() / 2) as usize;
    let first = conn.guest_sends(conn.data(conn.mss(), conn.mss()));
    assert!(burst_segs == 1 || lacks_flags(&first, sys::TCP_PSH), "first of a burst");
}

#[test]
fn psh_of_a_super_segment_applies_to_its_last_segment() {
    // (segments in it, PSH from the guest, PSH after translation), for bursts of three
    for (segs, given, expected) in [
        (2, false, false),
        (2, true, true),
        (3, false, true),
        (4, true, true),
        (4, false, false),
        (5, true, true),
        (6, false, true),
        (7, true, false),
    ] {
        let mut conn = with_burst(3);
        let data = conn.data(0, segs * conn.mss()).cut(conn.mss());
        let action = conn.guest_sends(if given { data.psh() } else { data });
        assert_eq!(has_flags(&action, sys::TCP_PSH), expected, "{segs} segments, PSH {given}");
    }
}

#[test]
fn a_short_last_segment_of_a_super_segment_counts() {
    let mut conn = with_burst(3);
    let action = conn.guest_sends(conn.data(0, 2 * conn.mss() + 1).cut(conn.mss()));
    assert!(has_flags(&action, sys::TCP_PSH));
}

#[test]
fn a_pure_ack_and_a_fin_keep_theirs() {
    let mut conn = with_burst(1);
    conn.send_segs(0, 3);
    assert!(has_flags(&conn.guest_sends(conn.data(3 * conn.mss(), 0).psh()), sys::TCP_PSH));
    let fin = conn.guest_sends(conn.data(3 * conn.mss(), 0).psh().fin());
    assert!(has_flags(&fin, sys::TCP_PSH | sys::TCP_FIN));
}

#[test]
fn the_parameter_turns_it_off() {
    let mut conn =
        Conn::established(Params(sys::vcc_params { pace_push: 0, ..Params::default().0 }), 5);
    assert_eq!(pushes(&mut conn, &[true; 12]), [true; 12]);
    let mut conn =
        Conn::established(Params(sys::vcc_params { pace_push: 0, ..Params::default().0 }), 5);
    assert_eq!(pushes(&mut conn, &[false; 12]), [false; 12]);
}

/// RFC 9293, 3.9.1 (MUST-61): PSH of a guest that could send another segment and does not marks the
/// end of its data.
#[test]
fn the_end_of_a_write_of_whole_segments_is_pushed() {
    for burst_segs in 2..10 {
        for segs in 1..2 * burst_segs {
            let mut conn = with_burst(burst_segs);
            let mss_bytes = conn.mss();
            conn.send_segs(0, segs - 1);
            let end = conn.guest_sends(conn.data((segs - 1) * mss_bytes, mss_bytes).psh());
            assert!(has_flags(&end, sys::TCP_PSH), "{segs} of {}", 2 * burst_segs);
            let mut conn = with_burst(burst_segs);
            let end = conn.guest_sends(conn.data(0, segs * mss_bytes).cut(mss_bytes).psh());
            assert!(has_flags(&end, sys::TCP_PSH), "{segs} of {}, at once", 2 * burst_segs);
        }
    }
}

/// At the window's end, PSH is due to the burst, and a native sender would not have set it. The
/// guest's own SACK blocks do not make its segments shorter.
#[test]
fn psh_at_the_windows_end_is_due_to_the_burst() {
    for blocks in [false, true] {
        let mut conn = with_burst(1);
        let bytes = if blocks { conn.mss() - 12 } else { conn.mss() };
        conn.send(0, bytes);
        let end = conn.data(bytes, bytes).psh();
        let end = conn.guest_sends(if blocks { end.sack() } else { end });
        assert!(lacks_flags(&end, sys::TCP_PSH), "{blocks}");
    }
}

#[test]
fn the_end_of_a_write_is_pushed_as_the_guest_pushes_it() {
    // A request of one full segment and a bit: the receiver must not wait for more.
    let mut conn = with_burst(1);
    let mss_bytes = conn.mss();
    conn.guest_sends(conn.data(0, mss_bytes));
    let end = conn.guest_sends(conn.data(mss_bytes, 100).psh());
    assert!(has_flags(&end, sys::TCP_PSH));
    let middle = conn.guest_sends(conn.data(mss_bytes + 100, 100));
    assert!(lacks_flags(&middle, sys::TCP_PSH));
}
