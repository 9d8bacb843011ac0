//! What acknowledgements show of the path (engine/path.h).

use crate::common::*;
use vcc_engine::{Params, sys};

/// Half of Linux's tcp_min_rtt_wlen.
const HALF_US: u64 = 150_000_000;

fn path(conn: &Conn) -> sys::vcc_path {
    conn.flow.cc.path
}

/// Two segments and their acknowledgement, which nobody delays.
fn round_trip(conn: &mut Conn, number: u32, rtt_us: u64) {
    conn.send_segs(2 * number, 2 * number + 2);
    conn.wait_us(rtt_us).peer_ack_segs(2 * number + 2);
}

#[test]
fn the_handshake_is_the_first_sample() {
    for isn in ISNS {
        let mut conn = Conn::new(Params::default(), isn);
        conn.guest_syn(linux_syn());
        conn.wait_us(70).peer_synack(linux_syn().ece());
        assert_eq!((path(&conn).rtt_us, path(&conn).rtt_min_us), (70, 70), "active open");
        assert_eq!(conn.flow.srtt_us8, 70 * 8, "of the retransmission timer as well");

        let mut conn = Conn::new(Params::default(), isn);
        conn.peer_syn(linux_syn());
        conn.wait_us(9).guest_synack(linux_syn());
        conn.wait_us(80).peer_ack(0);
        assert_eq!((path(&conn).rtt_us, path(&conn).rtt_min_us), (80, 80), "passive open");
        assert_eq!(conn.flow.srtt_us8, 80 * 8);
    }
}

#[test]
fn a_handshake_that_was_sent_again_is_none() {
    // Karn's algorithm: RFC 6298, 3.
    let mut conn = Conn::new(Params::default(), 5);
    conn.guest_syn(linux_syn());
    conn.wait_us(1_000_000).guest_syn(linux_syn());
    conn.wait_us(70).peer_synack(linux_syn());
    assert_eq!((path(&conn).rtt_us, path(&conn).rtt_min_us), (0, 0));

    let mut conn = Conn::new(Params::default(), 5);
    conn.peer_syn(linux_syn());
    conn.guest_synack(linux_syn());
    conn.wait_us(1_000_000).guest_synack(linux_syn());
    conn.wait_us(80).peer_ack(0);
    assert_eq!((path(&conn).rtt_us, path(&conn).rtt_min_us), (0, 0));
    assert_eq!(conn.flow.srtt_us8, 0);
    // Data is timed all the same.
    round_trip(&mut conn, 0, 300);
    assert_eq!(path(&conn).rtt_us, 300);
}

#[test]
fn the_least_rtt_is_of_the_last_150_to_300_seconds() {
    let mut conn = Conn::established(Params::default(), 5);
    let mut number = 0;
    let mut sample = |conn: &mut Conn, rtt_us: u64| {
        round_trip(conn, number, rtt_us);
        number += 1;
        path(conn).rtt_min_us
    };
    assert_eq!(sample(&mut conn, 400), 400);
    assert_eq!(sample(&mut conn, 300), 300);
    assert_eq!(sample(&mut conn, 500), 300);
    // The route has changed: what it was counts for another half.
    conn.wait_us(HALF_US);
    assert_eq!(sample(&mut conn, 500), 300, "the least of the half before");
    conn.wait_us(HALF_US);
    assert_eq!(sample(&mut conn, 600), 500);
    assert_eq!(sample(&mut conn, 450), 450);
}

#[test]
fn the_rate_is_of_what_was_acknowledged_in_the_meantime() {
    // draft-cheng-iccrg-delivery-rate-estimation, 2.
    let mut conn = Conn::established(Params::default(), 5);
    let mss_bytes = conn.mss();
    conn.send_segs(0, 10);
    conn.wait_us(1000).peer_ack_segs(10);
    assert_eq!(path(&conn).rate_bytes_per_ms, 10 * mss_bytes);
    // While the next segment is in flight, ten of before are acknowledged, and it with five more.
    conn.send_segs(10, 20);
    conn.wait_us(1000).peer_ack_segs(11);
    conn.send_segs(20, 26);
    conn.wait_us(500).peer_ack_segs(20);
    conn.wait_us(1500).peer_ack_segs(26);
    assert_eq!(path(&conn).rate_bytes_per_ms, 15 * mss_bytes / 2);
}

#[test]
fn a_delayed_ack_is_no_sample_where_delays_are_measured() {
    for (delays, latest_us) in [(1, 200u64), (0, 40_200)] {
        let mut conn = Conn::established(params(|p| p.delays = delays), 5);
        for number in 0..20 {
            round_trip(&mut conn, number, 200);
        }
        // A segment alone: its ACK may be delayed, or its peer's application answers late.
        conn.send_segs(40, 41);
        conn.wait_us(latest_us.max(1_200)).peer_ack_segs(41);
        assert_eq!(u64::from(path(&conn).rtt_us), latest_us, "delays {delays}");
        conn.send_segs(41, 42);
        conn.wait_us(150).peer_ack_segs(42);
        assert_eq!(path(&conn).rtt_us, 150, "nobody answers too soon");
    }
}

#[test]
fn a_queue_that_fills_at_once_is_a_sample() {
    let mut conn = Conn::established(Params::default(), 5);
    for number in 0..20 {
        round_trip(&mut conn, number, 200);
    }
    // One ACK for each segment, but no peer delays the ACK of the first of two.
    conn.send_segs(40, 50);
    conn.wait_us(40_000).peer_ack_segs(41);
    assert_eq!(path(&conn).rtt_us, 40_000);
    assert_eq!(conn.flow.fabric_us64 / 64, 200, "it may have lost the second");
}

#[test]
fn an_underlay_receives_the_target_and_the_floor() {
    let mut conn = Conn::established(params(|p| p.rtt_target_us = 77), 5);
    round_trip(&mut conn, 0, 200);
    assert_eq!((path(&conn).target_us, conn.flow.cc.floor_segs), (77, 1));
    // A peer that sends data delays the ACK of a single segment.
    let data = seg().seq(conn.peer_seq(0)).ack(conn.seq(2 * conn.mss())).len(100).win(PEER_WINDOW);
    conn.guest_gets(data);
    round_trip(&mut conn, 1, 200);
    assert_eq!(conn.flow.cc.floor_segs, 2);
    let mut conn = Conn::established(params(|p| p.window_floor_segs = 7), 5);
    round_trip(&mut conn, 0, 200);
    assert_eq!(conn.flow.cc.floor_segs, 7);
}

#[test]
fn another_syn_ack_is_timed_anew() {
    // A listener that has restarted answers with another ISN, which may be long before the first.
    let mut conn = Conn::new(Params::default(), 1 << 30);
    conn.peer_syn(linux_syn());
    conn.guest_synack(linux_syn());
    conn.guest_iss = 5;
    conn.wait_us(3_000_000).guest_synack(linux_syn());
    conn.wait_us(80).peer_ack(0);
    assert_eq!(path(&conn).rtt_us, 80);
    round_trip(&mut conn, 0, 300);
    assert_eq!(path(&conn).rtt_us, 300, "data is timed");
}

#[test]
fn a_handshake_of_both_that_was_sent_again_is_none() {
    // Simultaneous open: RFC 9293, 3.5.
    let mut conn = Conn::new(Params::default(), 5);
    conn.guest_syn(linux_syn());
    conn.peer_syn(linux_syn());
    conn.wait_us(1_000_000).guest_syn(linux_syn());
    conn.wait_us(70).peer_synack(linux_syn());
    assert_eq!(path(&conn).rtt_us, 0);
}

#[test]
fn a_keepalive_leaves_the_timed_segment_alone() {
    // Or a guest that sends one after each burst would have no samples (Karn: RFC 6298, 3).
    let mut conn = Conn::established(Params::default(), 5);
    conn.send_segs(0, 4);
    conn.guest_sends(conn.data(u32::MAX, 1));
    conn.wait_us(300).peer_ack_segs(4);
    assert_eq!(path(&conn).rtt_us, 300);
    // What comes behind the timed segment may be sent again, the timed one not.
    conn.send_segs(4, 8);
    conn.wait_us(10);
    conn.send_segs(7, 8);
    conn.wait_us(390).peer_ack_segs(8);
    assert_eq!(path(&conn).rtt_us, 400);
    conn.send_segs(8, 12);
    conn.send_segs(8, 9);
    conn.wait_us(500).peer_ack_segs(12);
    assert_eq!(path(&conn).rtt_us, 400);
}

#[test]
fn after_half_an_hour_nothing_is_left_of_the_least() {
    let mut conn = Conn::established(Params::default(), 5);
    round_trip(&mut conn, 0, 100);
    conn.wait_us(1_800_000_000);
    round_trip(&mut conn, 1, 700);
    assert_eq!(path(&conn).rtt_min_us, 700);
}
