//! What was sent and acknowledged (RFC 9293, 3.4; RFC 5681, 2).

mod common;

use common::*;
use vcc_engine::{Params, sys};

#[test]
fn data_and_acks_move_the_edges() {
    for isn in ISNS {
        let mut conn = Conn::established(Params::default(), isn);
        conn.send(0, 1000);
        conn.send(1000, 24);
        assert_eq!(conn.flow.snd_nxt, conn.seq(1024));
        assert_eq!(conn.flow.flight_bytes(), 1024);
        conn.peer_ack(1000);
        assert_eq!(conn.flow.snd_una, conn.seq(1000));
        conn.peer_ack(1024);
        assert_eq!(conn.flow.flight_bytes(), 0);
    }
}

#[test]
fn retransmissions_are_counted_and_move_nothing() {
    for isn in ISNS {
        let mut conn = Conn::established(Params::default(), isn);
        conn.send_segs(0, 4);
        conn.send(0, 1000);
        conn.send(conn.mss(), conn.mss());
        assert_eq!(conn.flow.retransmissions, 2);
        assert_eq!(conn.flow.snd_nxt, conn.seq(4 * conn.mss()));
    }
}

#[test]
fn a_keep_alive_is_no_retransmission() {
    // RFC 9293, 3.8.4: the byte before snd_una, or none.
    for isn in ISNS {
        let mut conn = Conn::established(Params::default(), isn);
        conn.send(0, 1000);
        conn.peer_ack(1000);
        conn.send(999, 1);
        conn.send(999, 0);
        assert_eq!(conn.flow.retransmissions, 0);
        assert_eq!(conn.flow.reductions, 0);
        conn.peer_ack(1000);
        assert_eq!(conn.flow.dupacks, 0, "nothing is in flight");
    }
}

#[test]
fn fin_takes_a_sequence_number() {
    for isn in ISNS {
        let mut conn = Conn::established(Params::default(), isn);
        conn.guest_sends(conn.data(0, 100).fin());
        assert_eq!(conn.flow.snd_nxt, conn.seq(101));
        conn.peer_ack(101);
        assert_eq!(conn.flow.flight_bytes(), 0);
    }
}

#[test]
fn an_ack_of_data_never_sent_is_the_guests_to_judge() {
    for isn in ISNS {
        let mut conn = Conn::established(Params::default(), isn);
        conn.send(0, 1000);
        let before = conn.flow;
        let action = conn.peer_ack(1001);
        assert!(!is_dropped(&action));
        assert_eq!(conn.flow.snd_una, before.snd_una);
        assert_eq!(conn.flow.right_edge, before.right_edge);
        assert_eq!(conn.flow.window_shown, before.window_shown);
    }
}

#[test]
fn duplicate_acks_by_rfc_5681() {
    for isn in ISNS {
        let mut conn = Conn::established(Params::default(), isn);
        conn.peer_ack(0);
        assert_eq!(conn.flow.dupacks, 0, "nothing is in flight");
        conn.send_segs(0, 4);
        conn.peer_ack(0);
        assert_eq!(conn.flow.dupacks, 1);
        conn.guest_gets(conn.ack(0).len(10));
        assert_eq!(conn.flow.dupacks, 1, "data");
        conn.guest_gets(conn.ack(0).win(PEER_WINDOW + 1));
        assert_eq!(conn.flow.dupacks, 1, "another window");
        conn.guest_gets(conn.ack(0).win(PEER_WINDOW + 1));
        assert_eq!(conn.flow.dupacks, 2);
        conn.guest_gets(conn.ack(0).win(PEER_WINDOW).sack());
        assert_eq!(conn.flow.dupacks, 3, "SACK blocks tell whatever the window does");
    }
}

#[test]
fn an_ack_that_moves_clears_the_duplicates() {
    let mut conn = Conn::established(Params::default(), 5);
    conn.send_segs(0, 6);
    for segs in 1..5 {
        conn.peer_ack_segs(segs);
        conn.peer_ack_segs(segs);
        conn.peer_ack_segs(segs);
    }
    assert_eq!(conn.flow.reductions, 0, "never three in a row");
}

#[test]
fn an_old_ack_does_not_disturb_the_duplicates() {
    // The guest takes no window from an ACK before snd_una (RFC 9293, 3.10.7.4), so what came
    // before a duplicate is the last current ACK.
    for isn in ISNS {
        let mut conn = Conn::established(Params::default(), isn);
        conn.send_segs(0, 8);
        let shown = conn.peer_ack_segs(4);
        conn.guest_gets(conn.ack(conn.mss()).win(PEER_WINDOW - 3));
        let duplicate = conn.peer_ack_segs(4);
        assert!(!is_dropped(&duplicate), "the guest needs it");
        assert_eq!(duplicate.window, shown.window);
        assert_eq!(conn.flow.dupacks, 1);
    }
}

#[test]
fn an_old_ack_moves_nothing() {
    for isn in ISNS {
        let mut conn = Conn::established(Params::default(), isn);
        conn.send_segs(0, 8);
        conn.peer_ack_segs(6);
        let before = conn.flow;
        conn.peer_ack_segs(2);
        assert_eq!(conn.flow.snd_una, before.snd_una);
        assert_eq!(conn.flow.dupacks, before.dupacks);
        assert_eq!(conn.cwnd(), before.cc.cwnd_segs);
    }
}

#[test]
fn the_guests_own_cut_is_its_segment_size() {
    let mut conn = Conn::established(Params::default(), 5);
    // A path MTU that shrank.
    conn.guest_sends(conn.data(0, 10_000).cut(1000));
    assert_eq!(conn.flow.mss_bytes, 1000);
    conn.guest_sends(conn.data(10_000, 300));
    assert_eq!(conn.flow.mss_bytes, 1000, "a short segment says nothing");
    conn.guest_sends(conn.data(10_300, 1400));
    assert_eq!(conn.flow.mss_bytes, 1400, "a longer one does");
}

#[test]
fn sequence_numbers_wrap_inside_a_flight() {
    let mut conn = Conn::established(Params::default(), 0xffff_f000);
    for first in (0..40).step_by(4) {
        conn.send_segs(first, first + 4);
        conn.peer_ack_segs(first + 2);
        conn.peer_ack_segs(first + 4);
    }
    assert_eq!(conn.flow.retransmissions, 0);
    assert_eq!(conn.flow.reductions, 0);
    assert_eq!(conn.flow.flight_bytes(), 0);
    assert!(conn.flow.snd_nxt < 0x1_0000, "it has wrapped");
}

#[test]
fn last_seen_follows_both_directions() {
    let mut conn = Conn::established(Params::default(), 5);
    conn.wait_us(3_000_000).send(0, 10);
    assert_eq!(conn.flow.last_seen_ms, (conn.now_us / 1000) as u32);
    conn.wait_us(2_000_000).peer_ack(10);
    assert_eq!(conn.flow.last_seen_ms, (conn.now_us / 1000) as u32);
    assert_eq!(u32::from(conn.flow.stage), sys::STAGE_ESTABLISHED);
}
