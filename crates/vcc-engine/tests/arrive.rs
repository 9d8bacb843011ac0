//! A connection that comes with its guest from another host.

use crate::common::*;
use vcc_engine::sys;

/// The connection on a host whose clock is another one. `now_us` of the host before stays behind.
fn moved(conn: &Conn) -> Conn {
    let now_us = conn.now_us / 3 + 77_777_777;
    let flow = conn.flow.described().arrive(&conn.params, now_us).expect("a connection");
    Conn { flow, now_us, ..conn.clone() }
}

fn dctcp() -> vcc_engine::Params {
    underlay("dctcp")
}

/// In the middle of a transfer: segments before `segs` are acknowledged, ten are in flight.
fn in_flight(mut conn: Conn, segs: u32) -> Conn {
    for sent in 0..segs + 10 {
        conn.send_segs(sent, sent + 1);
        conn.wait_us(50);
        if sent >= 10 {
            conn.peer_ack_segs(sent - 9);
        }
    }
    conn
}

#[test]
fn it_goes_on_with_its_window_and_its_scale() {
    let mut there = in_flight(Conn::established(params(|_| ()), 5), 40);
    let mut here = moved(&there);
    assert_eq!(here.cwnd(), there.cwnd());
    assert_ne!(here.flow.wscale_shown, here.flow.wscale_peer, "else there is nothing to translate");
    // The first ACK may repeat one that the guest has had, so it grants no growth.
    here.wait_us(50);
    let edge = here.flow.right_edge;
    let ack = here.peer_ack_segs(41);
    assert_eq!(ack.window, there.peer_ack_segs(41).window);
    assert!(here.shown_edge(41 * here.mss(), &ack) >= edge.wrapping_sub(here.seq(0)));
    here.send_segs(50, 51);
    here.wait_us(100);
    let before = here.cwnd();
    here.peer_ack_segs(50);
    assert!(here.cwnd() >= before);
    assert_eq!((here.flow.lags, here.flow.retransmissions), (0, 0));
    assert!(here.flow.srtt_us8 > 0);
}

#[test]
fn what_was_sent_since_it_was_described_is_no_news() {
    for segs_elsewhere in [100, 50_000, 800_000, 2_000_000] {
        let there = in_flight(Conn::established(dctcp(), 5), 40);
        let mut here = moved(&there);
        let cwnd = here.cwnd();
        // The guest says first where it is.
        here.send_segs(segs_elsewhere, segs_elsewhere + 1);
        let ack = here.peer_ack_segs(segs_elsewhere - 4);
        assert_eq!((here.cwnd(), here.flow.lags), (cwnd, 0), "{segs_elsewhere}");
        assert!(ack.window > 0 && here.shown_bytes(&ack) <= (cwnd + 1) * here.mss());
        // And from there on it counts: an ACK that covers the segment sent here.
        here.wait_us(300);
        here.peer_ack_segs(segs_elsewhere + 1);
        assert_eq!(here.flow.snd_una, here.flow.snd_nxt);
        assert!(here.flow.cc.path.rtt_us >= 300, "and is timed");
    }
}

#[test]
fn a_guest_that_only_receives_says_what_it_has() {
    let mut there = Conn::established(params(|_| ()), 5);
    for segs in 0..20 {
        there.guest_gets(there.ack(0).seq(there.peer_seq(segs * 1448)).len(1448));
        there.guest_acks((segs + 1) * 1448);
    }
    let mut here = moved(&there);
    let far = 3_000_000_u32;
    let data = |conn: &Conn, offset: u32| conn.ack(0).seq(conn.peer_seq(offset)).len(1448);
    // Beyond the edge that the port knows: the guest takes it nevertheless.
    let first = here.guest_gets(data(&here, far));
    assert_eq!(u32::from(first.verdict), sys::VCC_PASS);
    here.guest_acks(far + 1448);
    assert_eq!(here.flow.rcv_nxt, here.peer_seq(far + 1448));
    here.guest_gets(data(&here, far + 1448));
    assert_eq!((here.flow.rcv_nxt, here.flow.lags), (here.peer_seq(far + 2 * 1448), 0));
}

#[test]
fn until_the_guest_is_heard_it_keeps_the_window_that_it_was_shown() {
    let there = in_flight(Conn::established(params(|_| ()), 5), 40);
    let mut here = moved(&there);
    let ahead = here.guest_gets(here.ack(5_000 * here.mss()));
    assert_eq!(ahead.window, there.flow.window_shown);
    assert_eq!(here.flow.snd_una, there.flow.snd_una);
}

#[test]
fn the_first_report_is_compared_with_none_before_it() {
    let there = in_flight(Conn::to_vcc(dctcp(), 5), 40);
    let mut here = moved(&there);
    let mss = here.mss();
    here.send_segs(5_000, 5_010);
    let report = |conn: &Conn, segs: u32, ect0: u32, ce: u32| conn.ack(segs * mss).pack(ect0, ce);
    let cwnd = here.cwnd();
    // Marks that the host before has answered.
    here.guest_gets(report(&here, 5_001, 7_654_321, 123_456));
    here.wait_us(50);
    here.guest_gets(report(&here, 5_002, 7_654_321 + mss, 123_456));
    assert_eq!((here.flow.forged, here.flow.reductions, here.cwnd() >= cwnd), (0, 0, true));
    assert!(!here.flow.has(sys::FLOW_FEEDBACK_LOST) && !here.flow.has(sys::FLOW_FEEDBACK_FALSE));
    here.guest_gets(report(&here, 5_003, 7_654_321 + mss, 123_456 + mss));
    assert_eq!((here.flow.forged, here.flow.reductions), (0, 1), "the next one counts");
}

#[test]
fn the_first_counter_of_accecn_is_compared_with_none_before_it() {
    let mut there = Conn::new(dctcp(), 5);
    there.guest_syn(linux_syn());
    there.peer_synack(linux_syn().ace(2));
    there.guest_acks(0);
    let mss = there.mss();
    there.send_segs(0, 10);
    there.guest_gets(there.ack(5 * mss).ace(5));
    let mut here = moved(&there);
    here.send_segs(300, 310);
    here.guest_gets(here.ack(301 * mss).ace(3).accecn_option(0, 99 * mss));
    assert_eq!((here.flow.forged, here.flow.reductions), (0, 0));
    here.guest_gets(here.ack(303 * mss).ace(4).accecn_option(0, 100 * mss));
    assert_eq!((here.flow.forged, here.flow.reductions), (0, 1), "the next one counts");
}

#[test]
fn what_no_connection_is_like_does_not_arrive() {
    let there = in_flight(Conn::established(params(|_| ()), 5), 40);
    let described = |change: fn(&mut sys::vcc_flow)| {
        let mut flow = there.flow;
        change(&mut flow.0);
        flow.arrive(&there.params, 1_000_000).is_some()
    };
    assert!(described(|_| ()));
    assert!(!described(|flow| flow.mss_bytes = 0));
    assert!(!described(|flow| flow.snd_una = flow.snd_nxt.wrapping_add(1)));
    assert!(!described(|flow| flow.underlay = 99));
    assert!(!described(|flow| flow.stage = sys::STAGE_SYN_SENT as u8));
    assert!(!described(|flow| flow.wscale_shown = 15));
    assert!(!described(|flow| flow.wscale_peer = 15));
    assert!(!described(|flow| flow.wscale_guest = 15));
    assert!(!described(|flow| flow.mss_max_bytes = 0));
    assert!(!described(|flow| flow.accecn = 0xff));
    assert!(!described(|flow| flow.flags &= !sys::FLOW_SYN_SEEN_GUEST));
}
