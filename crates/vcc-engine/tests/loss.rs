//! Losses, timeouts and idleness, as inferred (RFC 5681, RFC 6582, RFC 6298).

use crate::common::*;
use vcc_engine::{Params, sys};

fn state(conn: &Conn) -> u32 {
    conn.flow.ca_state.into()
}

/// `segs` in flight after one round trip of 10 ms.
fn in_flight(isn: u32, segs: u32) -> Conn {
    let mut conn = Conn::established(Params::default(), isn);
    conn.send_segs(0, 1);
    conn.wait_us(10_000).peer_ack_segs(1);
    conn.send_segs(1, 1 + segs);
    conn
}

#[test]
fn the_third_duplicate_tells_of_a_loss() {
    for isn in ISNS {
        let mut conn = in_flight(isn, 10);
        let cwnd_segs = conn.cwnd();
        conn.peer_ack_segs(1);
        conn.peer_ack_segs(1);
        assert_eq!((state(&conn), conn.flow.reductions), (sys::CA_OPEN, 0));
        conn.peer_ack_segs(1);
        assert_eq!((state(&conn), conn.flow.reductions), (sys::CA_RECOVERY, 1));
        assert_eq!(conn.flow.cc.ssthresh_segs, cwnd_segs / 2);
        for _ in 0..7 {
            conn.peer_ack_segs(1);
        }
        conn.send_segs(1, 2);
        assert_eq!(conn.flow.reductions, 1, "the same loss");
    }
}

#[test]
fn recovery_lasts_until_beyond_recover() {
    // RFC 6582, 3.2, step 3, against a second fast retransmit for one window.
    for isn in ISNS {
        let mut conn = in_flight(isn, 10);
        for _ in 0..5 {
            conn.peer_ack_segs(1);
        }
        conn.send_segs(1, 2);
        conn.send_segs(11, 12);
        conn.peer_ack_segs(6);
        assert_eq!(state(&conn), sys::CA_RECOVERY, "a partial ACK");
        conn.peer_ack_segs(11);
        assert_eq!(state(&conn), sys::CA_RECOVERY, "recover itself");
        conn.peer_ack_segs(12);
        assert_eq!(state(&conn), sys::CA_OPEN);
        assert_eq!(conn.cwnd(), conn.flow.cc.ssthresh_segs);
    }
}

#[test]
fn a_retransmission_before_any_duplicate_tells_of_a_loss() {
    for isn in ISNS {
        let mut conn = in_flight(isn, 10);
        conn.send_segs(3, 4);
        assert_eq!((state(&conn), conn.flow.reductions), (sys::CA_RECOVERY, 1));
    }
}

#[test]
fn a_tail_loss_probe_is_no_loss() {
    // RFC 8985, 7.3: without window for new data the guest sends its last segment again.
    for isn in ISNS {
        let mut conn = in_flight(isn, 10);
        conn.wait_us(20_000).send_segs(10, 11);
        assert_eq!((state(&conn), conn.flow.reductions), (sys::CA_OPEN, 0));
        assert_eq!(conn.flow.retransmissions, 1);
        // With one segment in flight the tail is also the first.
        let mut conn = in_flight(isn, 1);
        conn.wait_us(20_000).send_segs(1, 2);
        assert_eq!((state(&conn), conn.flow.reductions), (sys::CA_OPEN, 0));
    }
}

/// Segments 1 to 11 in flight, of which the last is lost; the guest has sent it again, and that was
/// acknowledged.
fn probed(mut conn: Conn) -> Conn {
    conn.send_segs(0, 1);
    conn.wait_us(10_000).peer_ack_segs(1);
    conn.send_segs(1, 11);
    conn.wait_us(10_000).peer_ack_segs(10);
    conn.wait_us(20_000).send_segs(10, 11);
    conn.wait_us(10_000).peer_ack_segs(11);
    assert_eq!((state(&conn), conn.flow.reductions), (sys::CA_OPEN, 0), "nobody knows yet");
    conn
}

/// An ACK at `segs` that says by DSACK that the segment `number` came twice.
fn said_twice(conn: &Conn, segs: u32, number: u32) -> Seg {
    let mut ack = conn.ack(segs * conn.mss()).sack();
    ack.0.dsack_seq = conn.seq(number * conn.mss());
    ack.0.dsack_bytes = conn.mss();
    ack
}

#[test]
fn a_loss_that_a_probe_repaired_is_answered() {
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

/// A window is reduced when an ACK goes beyond the probe, which is in the next one: what is lost of
/// that is the same reduction's.
#[test]
fn windows_whose_tails_are_lost_are_answered() {
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
fn a_needless_probe_is_told_by_what_came_twice() {
    for isn in ISNS {
        // On an ACK of its own, or on the next one that acknowledges something.
        for at_once in [true, false] {
            let mut conn = probed(Conn::established(Params::default(), isn));
            if at_once {
                conn.guest_gets(said_twice(&conn, 11, 10));
            }
            conn.send_segs(11, 21);
            let next = if at_once { conn.ack(12 * conn.mss()) } else { said_twice(&conn, 12, 10) };
            conn.guest_gets(next);
            conn.peer_ack_segs(13);
            assert_eq!(conn.flow.reductions, 0);
        }
        // Of something else: that is another matter.
        let mut conn = probed(Conn::established(Params::default(), isn));
        conn.guest_gets(said_twice(&conn, 11, 5));
        conn.send_segs(11, 21);
        conn.peer_ack_segs(12);
        assert_eq!(conn.flow.reductions, 1);
        // Without SACK: by a duplicate.
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

/// The path's MTU has become smaller: all is sent again, in other segments, and nothing was lost to
/// congestion (RFC 8201, 5.4; Linux: tcp_simple_retransmit).
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
            // What is lost from here on is.
            conn.send(end, SMALL_BYTES);
            conn.send(end + SMALL_BYTES, SMALL_BYTES);
            conn.send(end + 2 * SMALL_BYTES, SMALL_BYTES);
            conn.send(end, SMALL_BYTES);
            assert_eq!(conn.flow.reductions, 1);
        }
    }
}

/// What ends a write is short as well.
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
    // Alone; and told when its acknowledgement comes.
    let (mut conn, at) = short_first();
    conn.send(at, 300);
    assert_eq!(conn.flow.reductions, 0, "it may be the first of many");
    conn.wait_us(10_000).peer_ack(at + 300 + 5 * 1440);
    assert_eq!((conn.flow.reductions, conn.mss()), (1, 1440));
    // With the one behind it.
    let (mut conn, at) = short_first();
    conn.send(at, 300);
    conn.send(at + 300, 1440);
    assert_eq!((conn.flow.reductions, conn.mss()), (1, 1440));
    // After a duplicate, or an ACK with blocks.
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
fn loss_inside_an_ecn_reduction_extends_it() {
    let mut conn = in_flight(5, 10);
    conn.guest_gets(conn.ack(2 * conn.mss()).ece());
    let ssthresh_segs = conn.flow.cc.ssthresh_segs;
    conn.send_segs(11, 13);
    for _ in 0..3 {
        conn.peer_ack_segs(2);
    }
    assert_eq!((state(&conn), conn.flow.reductions), (sys::CA_RECOVERY, 1));
    assert_eq!(conn.flow.cc.ssthresh_segs, ssthresh_segs);
    conn.peer_ack_segs(12);
    assert_eq!(state(&conn), sys::CA_RECOVERY, "what was in flight at the loss counts");
}

#[test]
fn ece_inside_a_recovery_is_not_answered_again() {
    let mut conn = in_flight(5, 10);
    for _ in 0..3 {
        conn.guest_gets(conn.ack(conn.mss()).ece());
    }
    assert_eq!(conn.flow.reductions, 1);
    conn.guest_gets(conn.ack(5 * conn.mss()).ece());
    assert_eq!(conn.flow.reductions, 1);
}

#[test]
fn a_reduction_for_loss_is_told_by_cwr() {
    // RFC 3168, 6.1.2: for any reason.
    let mut conn = in_flight(5, 10);
    for _ in 0..3 {
        conn.peer_ack_segs(1);
    }
    assert!(lacks_flags(&conn.send(conn.mss(), conn.mss()), sys::TCP_CWR), "not when repeated");
    assert!(has_flags(&conn.send(11 * conn.mss(), conn.mss()), sys::TCP_CWR));
}

#[test]
fn a_retransmission_after_the_timeout_is_a_timeout() {
    for isn in ISNS {
        let mut conn = in_flight(isn, 10);
        let cwnd_segs = conn.cwnd();
        conn.wait_us(250_000).send_segs(1, 2);
        assert_eq!((state(&conn), conn.flow.reductions), (sys::CA_LOSS, 1));
        assert_eq!((conn.cwnd(), conn.flow.cc.ssthresh_segs), (1, cwnd_segs / 2));
    }
}

#[test]
fn the_deadline_infers_a_timeout() {
    for isn in ISNS {
        let mut conn = in_flight(isn, 10);
        let wait = conn.deadline();
        assert_eq!(state(&conn), sys::CA_OPEN);
        assert!((200..=300).contains(&wait.deadline_ms), "{} ms", wait.deadline_ms);
        conn.wait_us(u64::from(wait.deadline_ms) * 1000).deadline();
        assert_eq!((state(&conn), conn.cwnd()), (sys::CA_LOSS, 1));
        // The guest's own timer goes off a little later: the same loss.
        conn.wait_us(10_000).send_segs(1, 2);
        assert_eq!(conn.flow.reductions, 1);
    }
}

#[test]
fn no_timeout_without_flight() {
    let mut conn = in_flight(5, 3);
    conn.peer_ack_segs(4);
    let wait = conn.wait_us(60_000_000).deadline();
    assert_eq!((state(&conn), conn.flow.reductions), (sys::CA_OPEN, 0));
    assert!(wait.deadline_ms > 1_000_000);
}

#[test]
fn a_clock_slightly_behind_is_no_timeout() {
    // Segments and deadlines come from several CPUs; a time may be read before the lock is won.
    let mut conn = in_flight(5, 3);
    conn.wait_us(5000).peer_ack_segs(2);
    conn.now_us -= 3;
    let wait = conn.deadline();
    assert_eq!((state(&conn), conn.flow.reductions), (sys::CA_OPEN, 0));
    assert_eq!(wait.forget, 0);
    conn.send_segs(2, 3);
    assert_ne!(state(&conn), sys::CA_LOSS);
}

#[test]
fn a_clock_slightly_behind_is_no_idleness() {
    let mut conn = in_flight(5, 20);
    conn.peer_ack_segs(21);
    let cwnd_segs = conn.cwnd();
    assert!(cwnd_segs > 10);
    conn.now_us -= 3;
    conn.send_segs(21, 22);
    assert_eq!(conn.cwnd(), cwnd_segs);
}

#[test]
fn after_a_timeout_slow_start_up_to_ssthresh() {
    for isn in ISNS {
        let mut conn = in_flight(isn, 10);
        conn.wait_us(250_000).send_segs(1, 2);
        let ssthresh_segs = conn.flow.cc.ssthresh_segs;
        conn.wait_us(10_000).peer_ack_segs(2);
        assert_eq!(conn.cwnd(), 2);
        conn.send_segs(2, 4);
        conn.wait_us(10_000).peer_ack_segs(4);
        assert_eq!(conn.cwnd(), 4);
        conn.send_segs(4, 8);
        conn.wait_us(10_000).peer_ack_segs(8);
        assert_eq!(conn.cwnd(), ssthresh_segs);
        assert_eq!(state(&conn), sys::CA_LOSS);
        conn.send_segs(8, 12);
        conn.wait_us(10_000).peer_ack_segs(12);
        assert_eq!(state(&conn), sys::CA_OPEN);
        assert_eq!(conn.flow.reductions, 1);
    }
}

/// Of what one ACK acknowledges after a timeout, only what was sent since can just have been
/// delivered (RFC 3465, 2.3: else a single ACK lets a whole window go at once).
#[test]
fn after_a_timeout_one_cumulative_ack_restores_nothing() {
    for by_deadline in [true, false] {
        for isn in ISNS {
            let mut conn = in_flight(isn, 10);
            conn.wait_us(250_000);
            if by_deadline {
                conn.deadline();
            }
            conn.send_segs(1, 2);
            assert_eq!(conn.cwnd(), 1);
            conn.wait_us(10_000).peer_ack_segs(11);
            assert_eq!(conn.cwnd(), 2, "all but the first had come before");
            conn.send_segs(11, 13);
            conn.wait_us(10_000).peer_ack_segs(13);
            assert_eq!((state(&conn), conn.cwnd()), (sys::CA_OPEN, 4));
        }
    }
}

/// The ACK that ends a recovery acknowledges what duplicates have told of before.
#[test]
fn the_end_of_a_recovery_lets_grow_by_what_it_delivers() {
    let mut conn = in_flight(5, 10);
    for _ in 0..9 {
        conn.peer_ack_segs(1);
    }
    conn.send_segs(1, 2);
    conn.send_segs(11, 12);
    conn.peer_ack_segs(12);
    assert_eq!((state(&conn), conn.cwnd()), (sys::CA_OPEN, 5));
    assert!(conn.flow.cc.credit_bytes <= 2 * conn.mss(), "{}", conn.flow.cc.credit_bytes);
}

#[test]
fn a_second_timeout_keeps_ssthresh() {
    // RFC 5681, 3.1: held constant when the timer goes off again for the same segment.
    let mut conn = in_flight(5, 10);
    conn.wait_us(250_000).send_segs(1, 2);
    let ssthresh_segs = conn.flow.cc.ssthresh_segs;
    conn.wait_us(1_000_000).send_segs(1, 2);
    conn.wait_us(3_000_000).deadline();
    assert_eq!(conn.flow.cc.ssthresh_segs, ssthresh_segs);
    assert_eq!((conn.cwnd(), conn.flow.reductions), (1, 1));
}

#[test]
fn a_timeout_inside_a_reduction_keeps_ssthresh() {
    // One window, one reduction of ssthresh; Linux's tcp_enter_loss asks after(high_seq, snd_una).
    let mut conn = in_flight(5, 10);
    for _ in 0..3 {
        conn.peer_ack_segs(1);
    }
    let ssthresh_segs = conn.flow.cc.ssthresh_segs;
    conn.wait_us(250_000).send_segs(1, 2);
    assert_eq!(state(&conn), sys::CA_LOSS);
    assert_eq!(conn.flow.cc.ssthresh_segs, ssthresh_segs);
    assert_eq!(conn.cwnd(), 1);
}

#[test]
fn a_timeout_after_a_reduction_cuts_ssthresh() {
    // All of the reduced window was acknowledged; what is lost now is another one.
    let mut conn = in_flight(5, 10);
    conn.guest_gets(conn.ack(2 * conn.mss()).ece());
    conn.peer_ack_segs(11);
    conn.send_segs(11, 16);
    conn.wait_us(10_000).peer_ack_segs(11);
    assert_eq!(conn.flow.cc.ssthresh_segs, 5);
    let cwnd_segs = conn.cwnd();
    conn.wait_us(400_000).send_segs(11, 12);
    assert_eq!(state(&conn), sys::CA_LOSS);
    assert_eq!(conn.flow.cc.ssthresh_segs, (cwnd_segs / 2).max(2));
}

#[test]
fn an_idle_guest_restarts_from_the_initial_window() {
    // RFC 5681, 4.1.
    for isn in ISNS {
        let mut conn = in_flight(isn, 20);
        conn.wait_us(10_000).peer_ack_segs(21);
        let cwnd_segs = conn.cwnd();
        assert!(cwnd_segs > 10);
        conn.wait_us(100_000).send_segs(21, 22);
        assert_eq!(conn.cwnd(), cwnd_segs, "not idle for an RTO");
        conn.wait_us(10_000).peer_ack_segs(22);
        conn.wait_us(400_000).guest_acks(0);
        assert_eq!(conn.cwnd(), cwnd_segs, "an ACK of the guest sends no data");
        let ssthresh_segs = conn.flow.cc.ssthresh_segs;
        conn.send_segs(22, 23);
        assert_eq!((conn.cwnd(), conn.flow.cc.ssthresh_segs), (10, ssthresh_segs));
    }
}

#[test]
fn an_idle_guest_never_gains() {
    let mut conn = in_flight(5, 4);
    conn.guest_gets(conn.ack(2 * conn.mss()).ece());
    conn.send_segs(5, 6);
    conn.wait_us(10_000).peer_ack_segs(6);
    let cwnd_segs = conn.cwnd();
    assert!(cwnd_segs < 10);
    conn.wait_us(5_000_000).send_segs(6, 7);
    assert_eq!(conn.cwnd(), cwnd_segs);
}

#[test]
fn an_app_limited_guest_does_not_grow() {
    // RFC 7661. Slow start tolerates up to twice of what is used (Linux: tcp_is_cwnd_limited).
    for isn in ISNS {
        let mut conn = Conn::established(Params::default(), isn);
        for number in 0..1000 {
            conn.send_segs(2 * number, 2 * number + 2);
            conn.wait_us(10_000).peer_ack_segs(2 * number + 2);
        }
        assert_eq!(conn.cwnd(), 10, "2 of 10 segments used");
    }
}

#[test]
fn an_app_limited_guest_does_not_grow_in_congestion_avoidance() {
    let mut conn = in_flight(5, 10);
    conn.guest_gets(conn.ack(2 * conn.mss()).ece());
    conn.send_segs(11, 12);
    conn.wait_us(10_000).peer_ack_segs(12);
    let cwnd_segs = conn.cwnd();
    for number in 6..500 {
        conn.send_segs(2 * number, 2 * number + 2);
        conn.wait_us(10_000).peer_ack_segs(2 * number + 2);
    }
    assert_eq!(conn.cwnd(), cwnd_segs);
}

/// RFC 7661; Linux: tcp_cwnd_application_limited, each time an RTO has passed like that.
#[test]
fn a_window_that_is_not_used_becomes_smaller() {
    for isn in ISNS {
        let mut conn = in_flight(isn, 10);
        conn.wait_us(10_000).peer_ack_segs(11);
        conn.flow.0.cc.cwnd_segs = 1280;
        conn.flow.0.cc.ssthresh_segs = 700;
        let mut sent = 11;
        let mut uses = |conn: &mut Conn, segs: u32, rounds: u32| {
            for _ in 0..rounds {
                conn.wait_us(10_000).send_segs(sent, sent + segs);
                sent += segs;
                conn.wait_us(10_000).peer_ack_segs(sent);
            }
        };
        uses(&mut conn, 20, 1);
        assert_eq!(conn.cwnd(), 1280, "an RTO has not passed");
        uses(&mut conn, 20, 12);
        assert_eq!((conn.cwnd(), conn.flow.cc.ssthresh_segs), (650, 960));
        uses(&mut conn, 20, 600);
        // Below ssthresh, slow start may grow to twice of what is used.
        assert!((20..60).contains(&conn.cwnd()), "{}", conn.cwnd());
        // The initial window needs no using.
        uses(&mut conn, 2, 600);
        assert_eq!(conn.cwnd(), 10);
        assert_eq!(conn.flow.reductions, 0);
    }
}

#[test]
fn a_window_that_is_used_stays() {
    let mut conn = in_flight(5, 10);
    conn.wait_us(10_000).peer_ack_segs(11);
    conn.flow.0.cc.ssthresh_segs = 30;
    conn.flow.0.cc.cwnd_segs = 30;
    let mut sent = 11;
    let mut before = 30;
    for _ in 0..200 {
        let window_segs = conn.cwnd();
        assert!(window_segs >= before);
        before = window_segs;
        conn.wait_us(10_000).send_segs(sent, sent + window_segs);
        sent += window_segs;
        conn.wait_us(10_000).peer_ack_segs(sent);
    }
    assert!(conn.cwnd() > 200);
}

/// A flow that lay idle for hours waits for its idle limit, but not with something in flight.
#[test]
fn after_an_idle_look_timeouts_are_inferred_all_the_same() {
    let mut conn = in_flight(5, 3);
    conn.wait_us(10_000).peer_ack_segs(4);
    let idle = conn.wait_us(60_000_000).deadline();
    assert!(idle.deadline_ms > 3_600_000, "{} ms", idle.deadline_ms);
    conn.wait_us(3_600_000_000).send_segs(4, 6);
    let wait = conn.deadline();
    assert!((200..=300).contains(&wait.deadline_ms), "{} ms", wait.deadline_ms);
    conn.wait_us(u64::from(wait.deadline_ms) * 1000).deadline();
    assert_eq!(state(&conn), sys::CA_LOSS);
}

#[test]
fn a_guest_that_uses_its_window_grows() {
    for isn in ISNS {
        let mut conn = Conn::established(Params::default(), isn);
        conn.send_segs(0, 10);
        conn.wait_us(10_000).peer_ack_segs(10);
        assert_eq!(conn.cwnd(), 20, "slow start doubles");
        conn.send_segs(10, 30);
        conn.guest_gets(conn.ack(11 * conn.mss()).ece());
        conn.send_segs(30, 31);
        conn.wait_us(10_000).peer_ack_segs(31);
        let start_segs = conn.cwnd();
        let mut sent = 31;
        for round in 1..20 {
            let window_segs = conn.cwnd();
            conn.send_segs(sent, sent + window_segs);
            for number in sent..sent + window_segs {
                conn.peer_ack_segs(number + 1);
            }
            sent += window_segs;
            conn.wait_us(10_000);
            let grown_segs = conn.cwnd() - start_segs;
            assert!(grown_segs.abs_diff(round) <= 1, "one a round: {grown_segs} after {round}");
        }
    }
}

#[test]
fn probing_a_closed_window_is_no_loss() {
    // RFC 9293, 3.8.6.1: a byte beyond the closed window, again and again.
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
