//! Losses and non-losses that retransmissions without duplicates reveal: tail loss probes, a smaller path MTU.

use super::*;

#[test]
fn a_tail_loss_probe_is_no_loss() {
    // RFC 8985, 7.3: without window for new data, the guest retransmits its last segment.
    for isn in ISNS {
        let mut conn = in_flight(isn, 10);
        conn.wait_us(20_000).send_segs(10, 11);
        assert_eq!((state(&conn), conn.flow.reductions), (sys::CA_OPEN, 0));
        assert_eq!(conn.flow.retransmissions, 1);
        // With one segment in flight, the tail is also the head.
        let mut conn = in_flight(isn, 1);
        conn.wait_us(20_000).send_segs(1, 2);
        assert_eq!((state(&conn), conn.flow.reductions), (sys::CA_OPEN, 0));
    }
}

/// Segments 1 to 11 in flight, of which the last is lost. The guest has probed with it, and the
/// probe was acknowledged.
fn probed(mut conn: Conn) -> Conn {
    conn.send_segs(0, 1);
    conn.wait_us(10_000).peer_ack_segs(1);
    conn.send_segs(1, 11);
    conn.wait_us(10_000).peer_ack_segs(10);
    conn.wait_us(20_000).send_segs(10, 11);
    conn.wait_us(10_000).peer_ack_segs(11);
    assert_eq!((state(&conn), conn.flow.reductions), (sys::CA_OPEN, 0), "not known yet");
    conn
}

/// An ACK at `segs` with a DSACK block of segment `number`.
fn with_dsack(conn: &Conn, segs: u32, number: u32) -> Seg {
    let mut ack = conn.ack(segs * conn.mss()).sack();
    ack.0.dsack_seq = conn.seq(number * conn.mss());
    ack.0.dsack_bytes = conn.mss();
    ack
}

#[test]
fn a_loss_repaired_by_a_probe_is_answered() {
    // RFC 8985, 7.4.2.
    for isn in ISNS {
        let mut conn = probed(Conn::established(Params::default(), isn));
        let cwnd_segs = conn.cwnd();
        conn.send_segs(11, 21);
        conn.wait_us(10_000).peer_ack_segs(12);
        assert_eq!((conn.flow.reductions, conn.flow.cc.ssthresh_segs), (1, cwnd_segs / 2));
        for segs in 13..=21 {
            conn.peer_ack_segs(segs);
        }
        assert_eq!(conn.flow.reductions, 1, "once");
    }
}

/// A lost tail is answered when an ACK goes beyond the probe, in the next window; a loss in that
/// window belongs to the same reduction.
#[test]
fn lost_tails_of_successive_windows_are_answered() {
    let mut conn = Conn::established(Params::default(), 5);
    let mut sent = 0;
    for window in 0..20u32 {
        conn.send_segs(sent, sent + 4);
        conn.wait_us(10_000).peer_ack_segs(sent + 3);
        conn.wait_us(30_000).send_segs(sent + 3, sent + 4);
        sent += 4;
        conn.wait_us(10_000).peer_ack_segs(sent);
        assert_eq!(conn.flow.reductions, window.div_ceil(2), "window {window}");
    }
    assert_eq!(conn.cwnd(), 2);
}

#[test]
fn a_spurious_probe_is_recognised_by_dsack() {
    for isn in ISNS {
        // On a pure DSACK, or on the next ACK of new data.
        for at_once in [true, false] {
            let mut conn = probed(Conn::established(Params::default(), isn));
            if at_once {
                conn.guest_gets(with_dsack(&conn, 11, 10));
            }
            conn.send_segs(11, 21);
            let next = if at_once { conn.ack(12 * conn.mss()) } else { with_dsack(&conn, 12, 10) };
            conn.guest_gets(next);
            conn.peer_ack_segs(13);
            assert_eq!(conn.flow.reductions, 0);
        }
        // A DSACK of another segment says nothing about the probe.
        let mut conn = probed(Conn::established(Params::default(), isn));
        conn.guest_gets(with_dsack(&conn, 11, 5));
        conn.send_segs(11, 21);
        conn.peer_ack_segs(12);
        assert_eq!(conn.flow.reductions, 1);
        // Without SACK: by a duplicate ACK.
        let bare = linux_syn().without(sys::OPT_SACK_PERMITTED);
        let mut conn = probed(Conn::opened(Params::default(), isn, bare, linux_syn()));
        conn.peer_ack_segs(11);
        conn.send_segs(11, 21);
        conn.peer_ack_segs(12);
        assert_eq!(conn.flow.reductions, 0);
    }
}

#[test]
fn a_mark_and_a_repaired_loss_are_one_reduction() {
    let mut conn = probed(Conn::established(Params::default(), 5));
    conn.send_segs(11, 21);
    conn.guest_gets(conn.ack(12 * conn.mss()).ece());
    conn.guest_gets(conn.ack(13 * conn.mss()).ece());
    assert_eq!(conn.flow.reductions, 1);
}

/// The path MTU shrinks: the flight is retransmitted in smaller segments, without congestion (RFC
/// 8201, 5.4; Linux: tcp_simple_retransmit).
#[test]
fn a_smaller_path_mtu_is_no_congestion() {
    const SMALL_BYTES: u32 = 1248;
    for isn in ISNS {
        for with_tso in [true, false] {
            let mut conn = in_flight(isn, 10);
            let (first, end) = (1440, 11 * 1440);
            let worth = conn.cwnd() * conn.mss();
            if with_tso {
                conn.guest_sends(conn.data(first, end - first).cut(SMALL_BYTES));
            } else {
                // Each segment becomes two (tcp_fragment).
                for number in 1..11 {
                    conn.send(number * 1440, SMALL_BYTES);
                    conn.send(number * 1440 + SMALL_BYTES, 1440 - SMALL_BYTES);
                }
            }
            assert_eq!((state(&conn), conn.flow.reductions), (sys::CA_OPEN, 0), "{with_tso}");
            assert_eq!(conn.mss(), SMALL_BYTES);
            assert_eq!(conn.cwnd(), worth / SMALL_BYTES);
            let shown = conn.wait_us(10_000).peer_ack(end);
            assert_eq!(conn.shown_bytes(&shown) % SMALL_BYTES, 0, "whole segments");
            assert_eq!(conn.flow.reductions, 0);
            // Later losses are losses.
            conn.send(end, SMALL_BYTES);
            conn.send(end + SMALL_BYTES, SMALL_BYTES);
            conn.send(end + 2 * SMALL_BYTES, SMALL_BYTES);
            conn.send(end, SMALL_BYTES);
            assert_eq!(conn.flow.reductions, 1);
        }
    }
}

/// The last segment of a write is short too.
#[test]
fn a_short_segment_that_was_lost_is_a_loss() {
    let short_first = || {
        let mut conn = in_flight(5, 0);
        let at = conn.mss();
        conn.send(at, 300);
        for number in 0..5 {
            conn.send(at + 300 + number * 1440, 1440);
        }
        (conn, at)
    };
    // A single segment; its acknowledgement reveals the loss.
    let (mut conn, at) = short_first();
    conn.send(at, 300);
    assert_eq!(conn.flow.reductions, 0, "it may be the first of several");
    conn.wait_us(10_000).peer_ack(at + 300 + 5 * 1440);
    assert_eq!((conn.flow.reductions, conn.mss()), (1, 1440));
    // With the segment behind it.
    let (mut conn, at) = short_first();
    conn.send(at, 300);
    conn.send(at + 300, 1440);
    assert_eq!((conn.flow.reductions, conn.mss()), (1, 1440));
    // After a duplicate ACK, or an ACK with SACK blocks.
    let (mut conn, at) = short_first();
    conn.peer_ack(at);
    conn.send(at, 300);
    assert_eq!(conn.flow.reductions, 1);
    let mut conn = in_flight(5, 4);
    conn.send(5 * 1440, 300);
    conn.send(5 * 1440 + 300, 1440);
    conn.guest_gets(conn.ack(5 * 1440).sack());
    conn.send(5 * 1440, 300);
    assert_eq!(conn.flow.reductions, 1);
}

#[test]
fn zero_window_probes_are_no_loss() {
    // RFC 9293, 3.8.6.1: a byte beyond the closed window, repeatedly.
    let mut conn = in_flight(5, 4);
    let mss_bytes = conn.mss();
    conn.guest_gets(conn.ack(4 * mss_bytes).win(0));
    let cwnd_segs = conn.cwnd();
    for _ in 0..5 {
        conn.wait_us(1_000_000);
        conn.send(4 * mss_bytes, 1);
        conn.deadline();
    }
    assert_eq!(state(&conn), sys::CA_OPEN);
    assert_eq!((conn.cwnd(), conn.flow.reductions), (cwnd_segs, 0));
}
