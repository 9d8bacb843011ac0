//! Windows in fractions of a segment, and below one (engine/cc/fractional_window.h).

use super::*;

const LEAST_1024: i32 = sys::WINDOW_LEAST_1024 as i32;
const SEGMENT_1024: i32 = sys::SEGMENT_1024 as i32;

fn holding(name: &str) -> Params {
    let mut params = without_prr(name);
    (params.0.act, params.0.window_floor_segs) = (sys::ACT_HOLD as u8, 0);
    params
}

/// The window in 1/1024 of a segment.
fn window_1024(conn: &Conn) -> i32 {
    conn.cwnd() as i32 * SEGMENT_1024 + i32::from(conn.flow.cc.part_1024)
}

/// A flow with one segment in flight at a time, and what its far end has.
struct Single {
    conn: Conn,
    far: Far,
    acked: u32,
}

impl Single {
    fn new(params: Params) -> Self {
        let conn = conn(params, 5, Reporting::Reports);
        Single { conn, far: Far::new(Reporting::Reports), acked: 0 }
    }

    /// A segment leaves and is acknowledged 1 ms later.
    fn round(&mut self, is_marked: bool) {
        let Single { conn, far, acked } = self;
        let mss_bytes = conn.mss();
        conn.send(*acked * mss_bytes, mss_bytes);
        *acked += 1;
        conn.wait_us(1000);
        let (unmarked, marked) = if is_marked { (0, mss_bytes) } else { (mss_bytes, 0) };
        let ack = conn.ack(*acked * mss_bytes).seq(conn.flow.rcv_nxt);
        conn.guest_gets(far.ack(ack, unmarked, marked));
    }

    fn with_window(params: Params, window_1024: i32) -> Self {
        let mut single = Self::new(params);
        (0..40).for_each(|_| single.round(true));
        let cc = &mut single.conn.flow.0.cc;
        (cc.cwnd_segs, cc.ssthresh_segs, cc.credit_bytes) = (1, 1, 0);
        cc.part_1024 = (window_1024 - SEGMENT_1024) as i16;
        single
    }
}

#[test]
fn without_a_floor_a_window_is_below_one_segment() {
    for name in ["dctcp", "dctcp-priority"] {
        for act in [sys::ACT_WINDOW, sys::ACT_HOLD, sys::ACT_SPLIT] {
            for (floor_segs, least_1024) in [(0, LEAST_1024), (1, SEGMENT_1024)] {
                let mut params = holding(name);
                (params.0.act, params.0.window_floor_segs) = (act as u8, floor_segs);
                let mut single = Single::new(params);
                (0..200).for_each(|_| single.round(true));
                assert_eq!(window_1024(&single.conn), least_1024, "{name} {act} {floor_segs}");
            }
        }
    }
}

fn showing(name: &str) -> Params {
    let mut params = holding(name);
    params.0.act = sys::ACT_WINDOW as u8;
    params
}

/// The action on the ACK of the segment that `Single::round` sends.
fn paced_ack(single: &mut Single, is_duplicate: bool) -> Action {
    let Single { conn, far, acked } = single;
    let mss_bytes = conn.mss();
    conn.send(*acked * mss_bytes, mss_bytes);
    conn.wait_us(1000);
    *acked += u32::from(!is_duplicate);
    let ack = conn.ack(*acked * mss_bytes).seq(conn.flow.rcv_nxt);
    conn.guest_gets(far.ack(ack, 0, 0))
}

#[test]
fn the_ack_that_admits_the_next_segment_waits_for_its_interval() {
    for floor_segs in [0, 1] {
        let mut params = showing("dctcp");
        params.0.window_floor_segs = floor_segs;
        let mut single = Single::with_window(params, 256);
        let srtt_us = single.conn.flow.srtt_us8 >> 3;
        let action = paced_ack(&mut single, false);
        let window_1024 = window_1024(&single.conn) as u32;
        let interval_us = srtt_us * SEGMENT_1024 as u32 / window_1024;
        let waits_us = if floor_segs == 0 { interval_us - 1000 } else { 0 };
        assert_eq!(action.delay_us, waits_us, "floor {floor_segs}");
        // Law 3: the guest does not depend on a window update.
        assert!(u32::from(action.window) << single.conn.flow.wscale_shown >= single.conn.mss());
    }
}

#[test]
fn what_a_guest_needs_for_a_repair_does_not_wait() {
    let mut single = Single::with_window(showing("dctcp"), 256);
    assert_ne!(paced_ack(&mut single, false).delay_us, 0);
    assert_eq!(paced_ack(&mut single, true).delay_us, 0, "a duplicate ACK");
}

/// Else the guest would take the wait for a loss.
#[test]
fn no_ack_waits_for_more_than_a_quarter_of_the_rto() {
    let mut params = showing("dctcp");
    params.0.rto_min_us = 4000;
    let mut single = Single::with_window(params, LEAST_1024);
    assert_eq!(paced_ack(&mut single, false).delay_us, 1000);
}

/// The guest answers at once what the port has kept from it.
#[test]
fn the_wait_at_the_port_is_not_the_guests() {
    let mut params = showing("dctcp");
    params.0.delays = 1;
    let mut single = Single::with_window(params, 256);
    let waits_us = paced_ack(&mut single, false).delay_us;
    single.conn.wait_us(u64::from(waits_us) + 50);
    paced_ack(&mut single, false);
    assert!(single.conn.flow.guest_worst_us <= 50, "{}", single.conn.flow.guest_worst_us);
}

#[test]
fn a_peer_that_sends_data_gets_two_segments_nevertheless() {
    let mut conn = conn(holding("dctcp"), 5, Reporting::Reports);
    conn.guest_gets(conn.ack(0).len(100));
    let mut single = Single { conn, far: Far::new(Reporting::Reports), acked: 0 };
    (0..200).for_each(|_| single.round(true));
    assert_eq!(window_1024(&single.conn), 2 * SEGMENT_1024);
}

/// A mark takes alpha / 2 of a fraction, too (RFC 8257, 3.3, step 9).
#[test]
fn a_mark_reduces_a_fraction_in_proportion() {
    let mut single = Single::with_window(holding("dctcp"), 600);
    single.conn.flow.0.cc.own[sys::DCTCP_ALPHA as usize] = 512;
    single.round(true);
    // alpha by then is 512 - 512 / 16 + 1024 / 16.
    assert_eq!(window_1024(&single.conn), 600 - 600 * 544 / 2048);
}

#[test]
fn growth_is_a_64th_in_a_round_trip_and_doubles_in_quiet() {
    let mut single = Single::with_window(holding("dctcp"), 512);
    // The reduction before ends.
    single.round(false);
    (single.conn.flow.0.cc.part_1024, single.conn.flow.0.cc.credit_bytes) = (-512, 0);
    single.round(false);
    assert_eq!(window_1024(&single.conn), 512 + 2 * 16, "an ACK of two round trips");
    single.conn.flow.0.cc.part_1024 = -512;
    single.conn.flow.0.cc.credit_bytes = 8 * SEGMENT_1024 as u32;
    single.round(false);
    assert_eq!(window_1024(&single.conn), 512 + 2 * 32, "eight of them without a mark");
    single.conn.flow.0.cc.part_1024 = (LEAST_1024 - SEGMENT_1024) as i16;
    single.round(false);
    assert_eq!(window_1024(&single.conn), LEAST_1024 + 256, "at most a quarter at a time");
    for _ in 0..400 {
        single.round(false);
    }
    assert!(single.conn.flow.cc.credit_bytes <= 64 << 10, "it does not wrap");
}

#[test]
fn the_next_segment_leaves_after_its_interval() {
    let params = holding("dctcp");
    let mut single = Single::with_window(params, 256);
    let conn = &mut single.conn;
    let srtt_us = conn.flow.srtt_us8 >> 3;
    assert!((900..1100).contains(&srtt_us));
    let due_us = |conn: &Conn| conn.flow.segment_interval_us(&params, conn.now_us as u32);
    // It was sent 1 ms ago.
    assert_eq!(due_us(conn), 4 * srtt_us - 1000);
    conn.wait_us(u64::from(4 * srtt_us) - 1001);
    assert_eq!(due_us(conn), 1);
    conn.wait_us(1);
    assert_eq!(due_us(conn), 0);
    // With a floor, no segment waits.
    conn.flow.0.sent_us = conn.now_us as u32;
    assert_ne!(due_us(conn), 0);
    let mut floored = params;
    floored.0.window_floor_segs = 1;
    assert_eq!(conn.flow.segment_interval_us(&floored, conn.now_us as u32), 0);
}
