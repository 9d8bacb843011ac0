//! Header prediction covers the bulk of a transfer. That it does the same as the engine's concerns
//! in order is a law: native.c checks it with every segment of every test.

use crate::common::*;
use vcc_engine::{Action, Params, Underlay, sys};

struct Transfer {
    conn: Conn,
    /// Of data and of ACKs: how many were expected.
    expected: [u32; 2],
    others: [u32; 2],
}

impl Transfer {
    fn pass(&mut self, segment: Seg, to_guest: bool) -> Action {
        let at = segment.at_us(self.conn.now_us).0;
        let conn = &mut self.conn;
        let seen = match conn.flow.is_expected(&conn.params, &at, to_guest) {
            true => &mut self.expected,
            false => &mut self.others,
        };
        seen[usize::from(to_guest)] += 1;
        if to_guest { conn.guest_gets(segment) } else { conn.guest_sends(segment) }
    }

    /// The guest sends what its window admits, and each segment is acknowledged a round trip later.
    fn run(params: Params, segs: u32) -> Self {
        let conn = Conn::established(params, 5);
        let mut it = Self { conn, expected: [0; 2], others: [0; 2] };
        let mss_bytes = it.conn.mss();
        let (mut sent, mut acked) = (0, 0);
        while acked < segs {
            while sent < acked + it.conn.cwnd().max(1) && sent < segs {
                it.pass(it.conn.data(sent * mss_bytes, mss_bytes), false);
                it.conn.wait_us(3);
                sent += 1;
            }
            it.conn.wait_us(400);
            while acked < sent {
                acked += 1;
                it.pass(it.conn.ack(acked * mss_bytes), true);
                it.conn.wait_us(7);
            }
        }
        it
    }
}

#[test]
fn most_of_a_transfer_is_expected() {
    for underlay in Underlay::all().filter(|it| it.controls()) {
        let it = Transfer::run(params(|p| p.underlay = underlay.number()), 2000);
        let [data, acks] = it.expected;
        let [other_data, other_acks] = it.others;
        // The first of each flight begins it.
        assert!(data > 10 * other_data, "{underlay:?}: {data} and {other_data}");
        assert!(acks > 100 * other_acks, "{underlay:?}: {acks} and {other_acks}");
    }
}

#[test]
fn so_are_reports_and_what_a_receiving_guest_sends() {
    let mut conn = Conn::to_vcc(params(|p| p.underlay = sys::UNDERLAY_dctcp as u8), 5);
    let mss_bytes = conn.mss();
    for segs in 1..50 {
        conn.send((segs - 1) * mss_bytes, mss_bytes);
        conn.wait_us(100);
        let ack = conn.ack(segs * mss_bytes).pack(1 + segs * mss_bytes, 0);
        let at = ack.at_us(conn.now_us).0;
        // The first window is another matter (window.h).
        assert_eq!(conn.flow.is_expected(&conn.params, &at, true), segs > 1, "{segs}");
        assert_eq!(conn.guest_gets(ack).strip, 1);
    }
    conn.send(49 * mss_bytes, mss_bytes);
    let marked = conn.ack(50 * mss_bytes).pack(1 + 49 * mss_bytes, mss_bytes).at_us(conn.now_us).0;
    assert!(!conn.flow.is_expected(&conn.params, &marked, true), "with a mark");

    let mut conn = Conn::from_vcc(params(|_| ()), 5);
    for segs in 1..50 {
        conn.guest_gets(conn.ack(0).seq(conn.peer_seq((segs - 1) * 1448)).len(1448));
        conn.wait_us(10);
        let ack = seg().seq(conn.flow.snd_nxt).ack(conn.peer_seq(segs * 1448)).win(500);
        let at = ack.at_us(conn.now_us).0;
        assert!(conn.flow.is_expected(&conn.params, &at, false), "{segs}");
        conn.guest_sends(ack);
    }
}

#[test]
fn what_needs_more_is_not() {
    let it = Transfer::run(params(|p| p.underlay = sys::UNDERLAY_reno_ecn as u8), 100);
    let conn = it.conn;
    let (mss_bytes, end) = (conn.mss(), 100 * conn.mss());
    let is_expected = |conn: &Conn, segment: Seg, to_guest| {
        conn.flow.is_expected(&conn.params, &segment.at_us(conn.now_us).0, to_guest)
    };
    let mut busy = conn.clone();
    busy.send(end, mss_bytes);
    assert!(is_expected(&busy, busy.data(end + mss_bytes, mss_bytes), false));
    assert!(is_expected(&busy, busy.ack(end + mss_bytes), true));
    assert!(is_expected(&conn, conn.data(end, mss_bytes), false), "with nothing in flight");
    for (what, data) in [
        ("a retransmission", busy.data(end, mss_bytes)),
        ("a gap", busy.data(end + 2 * mss_bytes, mss_bytes)),
        (
            "a smaller super-segment",
            busy.data(end + mss_bytes, 2 * mss_bytes - 2).cut(mss_bytes - 1),
        ),
        ("the end", busy.data(end + mss_bytes, mss_bytes).fin()),
    ] {
        assert!(!is_expected(&busy, data, false), "{what}");
    }
    for (what, ack) in [
        ("a mark", busy.ack(end + mss_bytes).ece()),
        ("a duplicate", busy.ack(end)),
        ("of what was not sent", busy.ack(end + mss_bytes + 1)),
        ("beside a hole in the options", busy.ack(end + mss_bytes).sack()),
        ("with the peer's end", busy.ack(end + mss_bytes).fin()),
    ] {
        assert!(!is_expected(&busy, ack, true), "{what}");
    }
}

#[test]
fn so_are_the_acks_of_a_peer_with_accecn() {
    let params = params(|p| p.underlay = sys::UNDERLAY_dctcp as u8);
    // Initially the field is 5 and the ECT(0) counter 1 (RFC 9768, 3.2.1).
    for option in [None, Some(0), Some(1448)] {
        let mut conn = Conn::to_accecn(params, 5);
        let mss_bytes = conn.mss();
        let with_option = |ack: Seg, segs: u32, ce_bytes: u32| match option {
            None => ack,
            Some(0) => ack.pack(1 + segs * mss_bytes, ce_bytes),
            Some(_) => ack.accecn_option(0, ce_bytes),
        };
        for segs in 1..50 {
            conn.send((segs - 1) * mss_bytes, mss_bytes);
            conn.wait_us(100);
            let ack = with_option(conn.ack(segs * mss_bytes).ace(5), segs, 0);
            let at = ack.at_us(conn.now_us).0;
            assert_eq!(conn.flow.is_expected(&conn.params, &at, true), segs > 1, "{segs}");
            let action = conn.guest_gets(ack);
            assert_eq!(
                (action.strip != 0, action.flags),
                (option.is_some(), sys::TCP_ACK as u16),
                "{segs}"
            );
        }
        conn.send(49 * mss_bytes, mss_bytes);
        let is_expected =
            |ack: Seg| conn.flow.is_expected(&conn.params, &ack.at_us(conn.now_us).0, true);
        let ack = || conn.ack(50 * mss_bytes);
        assert!(is_expected(with_option(ack().ace(5), 50, 0)));
        assert!(!is_expected(with_option(ack().ace(6), 49, mss_bytes)), "with a mark");
        assert!(!is_expected(with_option(ack(), 50, 0)), "with a field that ran back");
        if option.is_some() {
            assert!(!is_expected(with_option(ack().ace(5), 49, mss_bytes)), "a mark in the option");
        }
    }
}
