//! Reductions for losses that were none (RFC 3708; RFC 4015, 3.2).

use std::ops::Range;

use crate::common::*;
use vcc_engine::{Params, sys};

fn state(conn: &Conn) -> u32 {
    conn.flow.ca_state.into()
}

/// With SACK, twenty segments in flight in congestion avoidance.
fn flying(change: impl Fn(&mut sys::vcc_params), isn: u32) -> Conn {
    let mut conn = Conn::opened(params(change), isn, linux_syn(), linux_syn());
    assert!(conn.flow.has(sys::FLOW_SACK));
    conn.flow.0.cc.cwnd_segs = 20;
    conn.flow.0.cc.ssthresh_segs = 10;
    conn.send_segs(0, 20);
    conn
}

/// An ACK for the first `ack_segs`, which says that those of `twice` came twice (RFC 2883).
fn said_twice(conn: &Conn, ack_segs: u32, twice: Range<u32>) -> Seg {
    let mut segment = conn.ack(ack_segs * conn.mss()).sack();
    segment.0.dsack_seq = conn.seq(twice.start * conn.mss());
    segment.0.dsack_bytes = (twice.end - twice.start) * conn.mss();
    segment
}

fn windows(conn: &Conn) -> (u32, u32) {
    (conn.cwnd(), conn.flow.cc.ssthresh_segs)
}

#[test]
fn a_guest_with_sack_says_itself_what_is_lost() {
    for isn in ISNS {
        let mut conn = flying(|_| (), isn);
        for _ in 0..10 {
            conn.guest_gets(conn.ack(0).sack());
        }
        assert_eq!((state(&conn), conn.flow.reductions), (sys::CA_OPEN, 0));
        conn.send_segs(0, 1);
        assert_eq!((state(&conn), conn.flow.reductions), (sys::CA_RECOVERY, 1));
    }
}

/// After duplicates it is no probe (RFC 8985, 7), even if it is the last in flight.
#[test]
fn a_tail_sent_again_after_duplicates_is_a_loss() {
    let mut conn = flying(|_| (), 5);
    for _ in 0..4 {
        conn.guest_gets(conn.ack(0).sack());
    }
    conn.send_segs(19, 20);
    assert_eq!(state(&conn), sys::CA_RECOVERY);
}

#[test]
fn what_was_sent_again_in_vain_is_undone() {
    for isn in ISNS {
        // While it is still being repaired.
        let mut conn = flying(|_| (), isn);
        conn.send_segs(0, 2);
        assert_eq!(windows(&conn).1, 10);
        conn.guest_gets(said_twice(&conn, 10, 0..1));
        assert_eq!(state(&conn), sys::CA_RECOVERY, "one of two");
        conn.guest_gets(said_twice(&conn, 12, 1..2));
        assert_eq!((state(&conn), windows(&conn)), (sys::CA_OPEN, (20, 20)));

        // After it has ended.
        let mut conn = flying(|_| (), isn);
        conn.send_segs(0, 2);
        conn.send_segs(20, 25);
        conn.peer_ack_segs(25);
        assert_eq!(state(&conn), sys::CA_OPEN);
        assert!(conn.cwnd() < 12);
        conn.send_segs(25, 26);
        conn.guest_gets(said_twice(&conn, 26, 0..2));
        assert_eq!(windows(&conn), (20, 20));
        // Once: what comes twice later is no news.
        conn.flow.0.cc.cwnd_segs = 7;
        conn.guest_gets(said_twice(&conn, 26, 0..2));
        assert_eq!(conn.cwnd(), 7);
    }
}

#[test]
fn what_was_lost_is_not() {
    let lossy = |conn: &mut Conn| {
        conn.send_segs(0, 2);
        conn.send_segs(20, 25);
        conn.peer_ack_segs(25);
        conn.guest_gets(said_twice(conn, 25, 0..1));
        windows(conn)
    };
    assert_eq!(lossy(&mut flying(|_| (), 5)).1, 10, "one of two was missing");
    let mut off = flying(|p| p.undo = 0, 5);
    lossy(&mut off);
    off.guest_gets(said_twice(&off, 25, 1..2));
    assert_eq!(windows(&off).1, 10, "not wanted");
}

#[test]
fn a_mark_is_no_guess() {
    let mut conn = flying(|_| (), 5);
    conn.guest_gets(conn.ack(conn.mss()).ece());
    assert_eq!(state(&conn), sys::CA_CWR);
    // A loss within extends it.
    conn.send_segs(1, 2);
    assert_eq!(state(&conn), sys::CA_RECOVERY);
    let ssthresh_segs = windows(&conn).1;
    conn.guest_gets(said_twice(&conn, 5, 1..2));
    assert_eq!((state(&conn), windows(&conn).1), (sys::CA_RECOVERY, ssthresh_segs));
}

#[test]
fn a_timeout_is_not_undone() {
    let mut conn = flying(|_| (), 5);
    conn.send_segs(0, 1);
    conn.wait_us(3_000_000).deadline();
    conn.send_segs(0, 1);
    assert_eq!(state(&conn), sys::CA_LOSS);
    conn.guest_gets(said_twice(&conn, 1, 0..1));
    assert_eq!(state(&conn), sys::CA_LOSS);
    assert!(conn.cwnd() <= 2);
}

/// Segments that overtake each other cause one reduction after the other before the first DSACK.
#[test]
fn two_in_a_window_are_undone_together() {
    let mut conn = flying(|_| (), 5);
    conn.send_segs(0, 2);
    conn.send_segs(20, 24);
    conn.peer_ack_segs(24);
    assert_eq!(state(&conn), sys::CA_OPEN);
    conn.send_segs(24, 30);
    conn.send_segs(24, 25);
    assert_eq!((state(&conn), conn.flow.reductions), (sys::CA_RECOVERY, 2));
    conn.guest_gets(said_twice(&conn, 25, 0..2));
    assert!(conn.cwnd() < 12);
    conn.guest_gets(said_twice(&conn, 26, 24..25));
    assert_eq!((state(&conn), windows(&conn)), (sys::CA_OPEN, (20, 20)));
}

/// A real loss, long ago, does not keep later ones from being undone, nor lend them its window.
#[test]
fn what_is_long_ago_is_forgotten() {
    let mut conn = flying(|_| (), 5);
    conn.send_segs(0, 1);
    conn.send_segs(20, 24);
    conn.peer_ack_segs(24);
    for round in 0..5 {
        conn.send_segs(24 + 10 * round, 34 + 10 * round);
        conn.peer_ack_segs(34 + 10 * round);
    }
    let before = conn.cwnd();
    assert!(before < 20);
    conn.send_segs(74, 84);
    conn.send_segs(74, 75);
    assert_eq!(state(&conn), sys::CA_RECOVERY);
    conn.guest_gets(said_twice(&conn, 80, 74..75));
    assert_eq!((state(&conn), windows(&conn)), (sys::CA_OPEN, (before, before)));
}

/// RFC 8985, 7: the probe came twice, and the peer says so; the hole was a hole.
#[test]
fn a_probe_that_came_twice_does_not_speak_for_the_hole() {
    for isn in ISNS {
        let mut conn = flying(|_| (), isn);
        conn.send_segs(19, 20);
        assert_eq!(state(&conn), sys::CA_OPEN, "a probe");
        for _ in 0..4 {
            conn.guest_gets(conn.ack(0).sack());
        }
        conn.send_segs(0, 1);
        assert_eq!(state(&conn), sys::CA_RECOVERY);
        conn.guest_gets(said_twice(&conn, 0, 19..20));
        conn.send_segs(20, 22);
        conn.guest_gets(conn.ack(20 * conn.mss()));
        assert_eq!(windows(&conn).1, 10, "one of two was missing");
    }
}

/// A keep-alive, or old data, is answered by DSACK as well.
#[test]
fn old_data_does_not_speak_for_the_hole() {
    let mut conn = flying(|_| (), 5);
    conn.send_segs(0, 1);
    conn.send_segs(20, 24);
    conn.peer_ack_segs(24);
    for _ in 0..3 {
        conn.send_segs(10, 12);
        conn.guest_gets(said_twice(&conn, 24, 10..12));
    }
    assert_eq!(windows(&conn).1, 10);
}

/// A mark within a recovery is answered by its reduction, which therefore stands.
#[test]
fn a_mark_within_a_recovery_keeps_it() {
    let mut conn = flying(|_| (), 5);
    conn.send_segs(0, 1);
    conn.guest_gets(conn.ack(2 * conn.mss()).ece());
    conn.guest_gets(said_twice(&conn, 5, 0..1));
    assert_eq!((state(&conn), windows(&conn).1), (sys::CA_RECOVERY, 10));
}

/// The hole may come as the head of something new.
#[test]
fn a_loss_cannot_be_repaired_unseen() {
    let mut conn = flying(|_| (), 5);
    for _ in 0..4 {
        conn.guest_gets(conn.ack(0).sack());
    }
    let mss_bytes = conn.mss();
    conn.guest_sends(conn.data(0, 20 * mss_bytes + 1).cut(mss_bytes));
    assert_eq!(state(&conn), sys::CA_RECOVERY);
}

/// Gigabytes later sequence numbers have come round; what was left over then is long forgotten.
#[test]
fn nothing_is_left_over_after_a_wrap() {
    let mut conn = flying(|_| (), 5);
    conn.send_segs(0, 1);
    conn.send_segs(20, 24);
    conn.peer_ack_segs(24);
    for round in 0..3 {
        conn.send_segs(24 + 20 * round, 44 + 20 * round);
        conn.peer_ack_segs(44 + 20 * round);
    }
    assert_eq!((conn.flow.undo_bytes, u32::from(conn.flow.undo_prior_segs)), (0, 0));
    conn.flow.0.recover = conn.flow.snd_una.wrapping_sub((1 << 31) + 1);
    conn.send_segs(84, 94);
    let before = conn.cwnd();
    conn.send_segs(84, 85);
    let mss_bytes = conn.mss();
    assert_eq!((conn.flow.undo_bytes, u32::from(conn.flow.undo_prior_segs)), (mss_bytes, before));
}

/// It is told once, even if its ACK is overtaken.
#[test]
fn an_overtaken_ack_tells_of_it_too() {
    let mut conn = flying(|_| (), 5);
    conn.send_segs(0, 1);
    conn.peer_ack_segs(10);
    conn.guest_gets(said_twice(&conn, 9, 0..1));
    assert_eq!((state(&conn), windows(&conn)), (sys::CA_OPEN, (20, 20)));
}

/// What the peer says is compared with what was sent again (Linux: tcp_dsack_seen).
#[test]
fn a_block_of_what_was_not_sent_again_says_nothing() {
    for isn in ISNS {
        // Over all of it; of more than was sent again; beside it; of a copy that the network made.
        for twice in [0..25, 3..8, 2..4, 7..9, 15..16] {
            let mut conn = flying(|_| (), isn);
            conn.send_segs(3, 4);
            conn.send_segs(7, 8);
            conn.send_segs(20, 25);
            conn.peer_ack_segs(25);
            for _ in 0..3 {
                conn.guest_gets(said_twice(&conn, 25, twice.clone()));
            }
            assert_eq!(windows(&conn).1, 10, "{twice:?}");
            conn.guest_gets(said_twice(&conn, 25, 3..4));
            assert_eq!(windows(&conn).1, 10, "one of two");
            conn.guest_gets(said_twice(&conn, 25, 7..8));
            assert_eq!(windows(&conn), (20, 20));
        }
    }
}

#[test]
fn undo_is_the_default() {
    assert_eq!(Params::default().0.undo, 1);
}
