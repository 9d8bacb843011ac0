//! The end of a flow: FIN, RST and idle timeouts.

use crate::common::*;
use vcc_engine::{Params, sys};

fn stage(conn: &Conn) -> u32 {
    conn.flow.stage.into()
}

#[test]
fn both_fins_close() {
    for guest_first in [true, false] {
        for isn in ISNS {
            let mut conn = Conn::established(Params::default(), isn);
            for guest in [guest_first, !guest_first] {
                assert_eq!(stage(&conn), sys::STAGE_ESTABLISHED);
                if guest {
                    conn.guest_sends(conn.data(0, 0).fin());
                } else {
                    conn.guest_gets(conn.ack(0).fin());
                }
            }
            assert_eq!(stage(&conn), sys::STAGE_CLOSED);
            // Further ACKs and retransmitted FINs do not reopen it.
            conn.peer_ack(1);
            conn.guest_acks(1);
            conn.guest_sends(conn.data(0, 0).fin());
            assert_eq!(stage(&conn), sys::STAGE_CLOSED);
        }
    }
}

#[test]
fn a_half_closed_flow_is_still_controlled() {
    let mut conn = Conn::established(Params::default(), 5);
    conn.guest_gets(conn.ack(0).fin());
    conn.send_segs(0, 5);
    let shown = conn.guest_gets(conn.ack(conn.mss()).ece());
    assert_eq!(conn.flow.reductions, 1);
    assert!(conn.shown_bytes(&shown) <= 10 * conn.mss());
}

#[test]
fn segments_in_flight_at_the_end_are_still_translated() {
    let mut conn = Conn::established(Params::default(), 5);
    conn.send_segs(0, 5);
    conn.guest_sends(conn.data(5 * conn.mss(), 0).fin());
    conn.guest_gets(conn.ack(conn.mss()).fin());
    assert_eq!(stage(&conn), sys::STAGE_CLOSED);
    let shown = conn.peer_ack_segs(2);
    assert!(conn.shown_bytes(&shown) >= conn.flow.flight_bytes());
    assert!(lacks_flags(&conn.guest_gets(conn.ack(3 * conn.mss()).ece()), sys::TCP_ECE));
}

#[test]
fn a_rst_closes() {
    let mut conn = Conn::established(Params::default(), 5);
    let rst = conn.data(0, 0).rst();
    assert_untouched(&conn.guest_sends(rst), &rst.0);
    assert_eq!(stage(&conn), sys::STAGE_CLOSED);

    let mut conn = Conn::established(Params::default(), 5);
    let rst = conn.ack(0).rst();
    assert!(has_flags(&conn.guest_gets(rst), sys::TCP_RST));
    assert_eq!(stage(&conn), sys::STAGE_CLOSED);
}

#[test]
fn a_rst_after_data_of_the_peer_closes() {
    let mut conn = Conn::established(Params::default(), 5);
    conn.guest_gets(conn.ack(0).len(1000));
    conn.guest_acks(1000);
    conn.guest_gets(seg().seq(conn.peer_seq(1000)).rst());
    assert_eq!(stage(&conn), sys::STAGE_CLOSED);
}

#[test]
fn a_refused_connection_closes() {
    let mut conn = Conn::new(Params::default(), 5);
    conn.guest_syn(linux_syn());
    conn.guest_gets(seg().rst().ack(conn.seq(0)));
    assert_eq!(stage(&conn), sys::STAGE_CLOSED);

    let mut conn = Conn::new(Params::default(), 5);
    conn.peer_syn(linux_syn());
    conn.guest_sends(seg().rst().ack(conn.peer_seq(0)));
    assert_eq!(stage(&conn), sys::STAGE_CLOSED);
}

#[test]
fn a_forged_rst_ends_nothing() {
    // The guest answers a RST at an unexpected number by a challenge ACK (RFC 5961, 3.2).
    let mut conn = Conn::established(Params::default(), 5);
    conn.send_segs(0, 5);
    for wrong in [1, 77, 1 << 20, u32::MAX] {
        conn.guest_gets(seg().seq(conn.peer_seq(wrong)).rst());
    }
    conn.guest_gets(conn.ack(conn.mss()).ece());
    assert_eq!(stage(&conn), sys::STAGE_ESTABLISHED);
    assert_eq!(conn.flow.reductions, 1);

    let mut conn = Conn::new(Params::default(), 5);
    conn.guest_syn(linux_syn());
    conn.guest_gets(seg().rst().ack(conn.seq(7)));
    conn.peer_synack(linux_syn().ece());
    assert!(conn.flow.is_managed());
}

#[test]
fn a_guest_that_sends_after_a_rst_reopens_the_flow() {
    let mut conn = Conn::established(Params::default(), 5);
    conn.guest_gets(conn.ack(0).rst());
    conn.send(0, 100);
    assert_eq!(stage(&conn), sys::STAGE_ESTABLISHED);
    assert!(conn.flow.is_managed());
}

/// Follows the deadlines until the flow is to be forgotten. Returns the time in ms.
fn forgotten_after_ms(conn: &mut Conn) -> u64 {
    let start_us = conn.now_us;
    for _ in 0..10_000 {
        let action = conn.deadline();
        if action.forget != 0 {
            return (conn.now_us - start_us) / 1000;
        }
        assert!(action.deadline_ms > 0, "a deadline of 0 spins");
        conn.wait_us(u64::from(action.deadline_ms) * 1000);
    }
    panic!("never forgotten");
}

#[test]
fn idle_timeouts_depend_on_the_stage() {
    let limits = Params::default().0;
    let handshake_ms = u64::from(limits.idle_handshake_ms);

    let mut conn = Conn::new(Params::default(), 5);
    conn.guest_syn(linux_syn());
    assert_eq!(forgotten_after_ms(&mut conn), handshake_ms);

    let mut conn = Conn::new(Params::default(), 5);
    conn.peer_syn(linux_syn());
    assert_eq!(forgotten_after_ms(&mut conn), 10_000, "as in a SYN flood");

    let mut conn = Conn::new(Params::default(), 5);
    conn.peer_syn(linux_syn());
    conn.guest_synack(linux_syn());
    assert_eq!(forgotten_after_ms(&mut conn), handshake_ms);

    let mut conn = Conn::established(Params::default(), 5);
    assert_eq!(forgotten_after_ms(&mut conn), u64::from(limits.idle_established_ms));

    let mut conn = Conn::established(Params::default(), 5);
    conn.guest_sends(conn.data(0, 0).fin());
    assert_eq!(forgotten_after_ms(&mut conn), u64::from(limits.idle_half_closed_ms));

    let mut conn = Conn::established(Params::default(), 5);
    conn.guest_sends(conn.data(0, 0).rst());
    assert_eq!(forgotten_after_ms(&mut conn), u64::from(limits.idle_closed_ms));
}

#[test]
fn closed_flows_give_way_in_a_crowded_table() {
    assert!(!vcc_engine::is_crowded(50, 100) && vcc_engine::is_crowded(51, 100));

    let forgotten = |conn: &mut Conn, idle_us, crowded| {
        conn.flow.deadline(&conn.params, conn.now_us + idle_us, crowded).forget != 0
    };
    let mut closed = Conn::established(Params::default(), 5);
    closed.guest_sends(closed.data(0, 0).rst());
    assert!(!forgotten(&mut closed, 999_000, true));
    assert!(!forgotten(&mut closed, 1_000_000, false));
    assert!(forgotten(&mut closed, 1_000_000, true));
    // Who looks too early comes back in time.
    let action = closed.flow.deadline(&closed.params, closed.now_us + 400_000, true);
    assert_eq!(action.deadline_ms, 600);

    let mut open = Conn::established(Params::default(), 5);
    assert!(!forgotten(&mut open, 1_000_000, true), "an established flow never gives way");
}

#[test]
fn timeouts_do_not_keep_a_silent_flow() {
    let mut conn = Conn::established(params(|p| p.idle_established_ms = 600_000), 5);
    conn.send_segs(0, 3);
    assert_eq!(forgotten_after_ms(&mut conn), 600_000);
    assert_eq!((conn.flow.reductions, conn.cwnd()), (1, 1));
}

#[test]
fn a_segment_restarts_the_idle_timeout() {
    let mut conn = Conn::established(params(|p| p.idle_established_ms = 1000), 5);
    for _ in 0..10 {
        conn.wait_us(900_000).guest_acks(0);
        assert_eq!(conn.deadline().forget, 0);
    }
    conn.wait_us(1_000_000);
    assert_eq!(conn.deadline().forget, 1);
}
