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
fn only_a_port_that_holds_segments_has_a_window_below_one() {
    for name in ["dctcp", "dctcp-priority"] {
        let cases =
            [(sys::ACT_HOLD, 0), (sys::ACT_SPLIT, 0), (sys::ACT_HOLD, 1), (sys::ACT_WINDOW, 0)];
        for (act, floor_segs) in cases {
            let mut params = holding(name);
            (params.0.act, params.0.window_floor_segs) = (act as u8, floor_segs);
            let mut single = Single::new(params);
            (0..200).for_each(|_| single.round(true));
            let below = act != sys::ACT_WINDOW && floor_segs == 0;
            let least_1024 = if below { LEAST_1024 } else { SEGMENT_1024 };
            assert_eq!(window_1024(&single.conn), least_1024, "{name} {act} {floor_segs}");
        }
    }
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
    let due_us = |conn: &Conn| conn.flow.hold_interval_us(&params, conn.now_us as u32);
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
    assert_eq!(conn.flow.hold_interval_us(&floored, conn.now_us as u32), 0);
}
