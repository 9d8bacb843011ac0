//! Undo of spurious reductions (RFC 3708; RFC 4015, 3.2).

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

/// An ACK for the first `ack_segs`, with a DSACK block of segments `twice` (RFC 2883).
fn with_dsack(conn: &Conn, ack_segs: u32, twice: Range<u32>) -> Seg {
    let mut segment = conn.ack(ack_segs * conn.mss()).sack();
    segment.0.dsack_seq = conn.seq(twice.start * conn.mss());
    segment.0.dsack_bytes = (twice.end - twice.start) * conn.mss();
    segment
}

fn windows(conn: &Conn) -> (u32, u32) {
    (conn.cwnd(), conn.flow.cc.ssthresh_segs)
}

#[test]
fn a_guest_with_sack_detects_losses_itself() {
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

/// After duplicates, a retransmitted tail is no probe (RFC 8985, 7).
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
fn spurious_retransmissions_are_undone() {
    for isn in ISNS {
        // During the recovery.
        let mut conn = flying(|_| (), isn);
        conn.send_segs(0, 2);
        assert_eq!(windows(&conn).1, 10);
        conn.guest_gets(with_dsack(&conn, 10, 0..1));
        assert_eq!(state(&conn), sys::CA_RECOVERY, "one of two");
        conn.guest_gets(with_dsack(&conn, 12, 1..2));
        assert_eq!((state(&conn), windows(&conn)), (sys::CA_OPEN, (20, 20)));

        // After the recovery.
        let mut conn = flying(|_| (), isn);
        conn.send_segs(0, 2);
        conn.send_segs(20, 25);
        conn.peer_ack_segs(25);
        assert_eq!(state(&conn), sys::CA_OPEN);
        assert!(conn.cwnd() < 12);
        conn.send_segs(25, 26);
        conn.guest_gets(with_dsack(&conn, 26, 0..2));
        assert_eq!(windows(&conn), (20, 20));
        // Once: later DSACKs do nothing.
        conn.flow.0.cc.cwnd_segs = 7;
        conn.guest_gets(with_dsack(&conn, 26, 0..2));
        assert_eq!(conn.cwnd(), 7);
    }
}

#[test]
fn real_losses_are_not_undone() {
    let lossy = |conn: &mut Conn| {
        conn.send_segs(0, 2);
        conn.send_segs(20, 25);
        conn.peer_ack_segs(25);
        conn.guest_gets(with_dsack(conn, 25, 0..1));
        windows(conn)
    };
    assert_eq!(lossy(&mut flying(|_| (), 5)).1, 10, "one of two was missing");
    let mut off = flying(|p| p.undo = 0, 5);
    lossy(&mut off);
    off.guest_gets(with_dsack(&off, 25, 1..2));
    assert_eq!(windows(&off).1, 10, "disabled");
}

/// With policing, a receiver's word is not enough: the hole must have been filled sooner than by a
/// retransmission (RFC 3522).
#[test]
fn with_policing_what_a_retransmission_filled_is_not_undone() {
    const RTT_US: u64 = 1000;
    let flying = |police| {
        let mut conn = flying(|_| (), 5);
        conn.params.0.police = police;
        conn.flow.0.srtt_us8 = 8 * RTT_US as u32;
        conn
    };
    let answered_after = |conn: &mut Conn, us| {
        conn.send_segs(0, 2);
        conn.wait_us(us);
        conn.peer_ack_segs(10);
        conn.wait_us(RTT_US - us);
        conn.guest_gets(with_dsack(conn, 10, 0..2));
        (state(conn), windows(conn).1)
    };
    assert_eq!(answered_after(&mut flying(0), RTT_US), (sys::CA_OPEN, 20), "Linux's word");
    assert_eq!(answered_after(&mut flying(1), RTT_US), (sys::CA_RECOVERY, 10));
    assert_eq!(answered_after(&mut flying(1), RTT_US / 2), (sys::CA_RECOVERY, 10));
    assert_eq!(answered_after(&mut flying(1), RTT_US / 4), (sys::CA_OPEN, 20), "reordered");
    // With the ACK that fills the hole.
    let mut at_once = flying(1);
    at_once.send_segs(0, 1);
    at_once.wait_us(RTT_US);
    at_once.guest_gets(with_dsack(&at_once, 10, 0..1));
    assert_eq!(windows(&at_once).1, 10);
    // A later needless one does not take the real one back.
    at_once.send_segs(20, 22);
    at_once.peer_ack_segs(22);
    let before = at_once.cwnd();
    at_once.flow.0.srtt_us8 = 8 * RTT_US as u32;
    at_once.send_segs(22, 32);
    at_once.send_segs(22, 23);
    at_once.wait_us(RTT_US / 4).peer_ack_segs(23);
    at_once.guest_gets(with_dsack(&at_once, 23, 22..23));
    assert_eq!((state(&at_once), at_once.cwnd()), (sys::CA_OPEN, before));
}

#[test]
fn a_mark_is_not_undone() {
    let mut conn = flying(|_| (), 5);
    conn.guest_gets(conn.ack(conn.mss()).ece());
    assert_eq!(state(&conn), sys::CA_CWR);
    // A loss during the reduction extends it.
    conn.send_segs(1, 2);
    assert_eq!(state(&conn), sys::CA_RECOVERY);
    let ssthresh_segs = windows(&conn).1;
    conn.guest_gets(with_dsack(&conn, 5, 1..2));
    assert_eq!((state(&conn), windows(&conn).1), (sys::CA_RECOVERY, ssthresh_segs));
}

#[test]
fn a_timeout_is_not_undone() {
    let mut conn = flying(|_| (), 5);
    conn.send_segs(0, 1);
    conn.wait_us(3_000_000).deadline();
    conn.send_segs(0, 1);
    assert_eq!(state(&conn), sys::CA_LOSS);
    conn.guest_gets(with_dsack(&conn, 1, 0..1));
    assert_eq!(state(&conn), sys::CA_LOSS);
    assert!(conn.cwnd() <= 2);
}

/// Reordering causes several reductions before the first DSACK.
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
    conn.guest_gets(with_dsack(&conn, 25, 0..2));
    assert!(conn.cwnd() < 12);
    conn.guest_gets(with_dsack(&conn, 26, 24..25));
    assert_eq!((state(&conn), windows(&conn)), (sys::CA_OPEN, (20, 20)));
}

/// An old real loss neither keeps later reductions from being undone, nor restores its window.
#[test]
fn old_retransmissions_expire() {
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
    conn.guest_gets(with_dsack(&conn, 80, 74..75));
    assert_eq!((state(&conn), windows(&conn)), (sys::CA_OPEN, (before, before)));
}

/// RFC 8985, 7: a DSACK of the probe says nothing about the hole.
#[test]
fn a_dsack_of_a_probe_undoes_nothing() {
    for isn in ISNS {
        let mut conn = flying(|_| (), isn);
        conn.send_segs(19, 20);
        assert_eq!(state(&conn), sys::CA_OPEN, "a probe");
        for _ in 0..4 {
            conn.guest_gets(conn.ack(0).sack());
        }
        conn.send_segs(0, 1);
        assert_eq!(state(&conn), sys::CA_RECOVERY);
        conn.guest_gets(with_dsack(&conn, 0, 19..20));
        conn.send_segs(20, 22);
        conn.guest_gets(conn.ack(20 * conn.mss()));
        assert_eq!(windows(&conn).1, 10, "one of two was missing");
    }
}

/// Keepalives and old data are answered by DSACK too.
#[test]
fn a_dsack_of_old_data_undoes_nothing() {
    let mut conn = flying(|_| (), 5);
    conn.send_segs(0, 1);
    conn.send_segs(20, 24);
    conn.peer_ack_segs(24);
    for _ in 0..3 {
        conn.send_segs(10, 12);
        conn.guest_gets(with_dsack(&conn, 24, 10..12));
    }
    assert_eq!(windows(&conn).1, 10);
}

/// A reduction also answers a mark during the recovery, so it stands.
#[test]
fn a_mark_during_a_recovery_makes_it_final() {
    let mut conn = flying(|_| (), 5);
    conn.send_segs(0, 1);
    conn.guest_gets(conn.ack(2 * conn.mss()).ece());
    conn.guest_gets(with_dsack(&conn, 5, 0..1));
    assert_eq!((state(&conn), windows(&conn).1), (sys::CA_RECOVERY, 10));
}

/// The retransmission may extend the hole with new data.
#[test]
fn a_retransmission_with_new_data_is_seen() {
    let mut conn = flying(|_| (), 5);
    for _ in 0..4 {
        conn.guest_gets(conn.ack(0).sack());
    }
    let mss_bytes = conn.mss();
    conn.guest_sends(conn.data(0, 20 * mss_bytes + 1).cut(mss_bytes));
    assert_eq!(state(&conn), sys::CA_RECOVERY);
}

/// Gigabytes later, sequence numbers have wrapped; old retransmissions have expired.
#[test]
fn nothing_is_left_after_a_wrap() {
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

/// A DSACK is sent once; a reordered ACK counts.
#[test]
fn a_dsack_on_a_reordered_ack_counts() {
    let mut conn = flying(|_| (), 5);
    conn.send_segs(0, 1);
    conn.peer_ack_segs(10);
    conn.guest_gets(with_dsack(&conn, 9, 0..1));
    assert_eq!((state(&conn), windows(&conn)), (sys::CA_OPEN, (20, 20)));
}

/// A DSACK is compared with the retransmissions (Linux: tcp_dsack_seen).
#[test]
fn a_dsack_of_other_data_is_ignored() {
    for isn in ISNS {
        // Blocks of everything, of more than was retransmitted, of other data, and of a network
        // duplicate.
        for twice in [0..25, 3..8, 2..4, 7..9, 15..16] {
            let mut conn = flying(|_| (), isn);
            conn.send_segs(3, 4);
            conn.send_segs(7, 8);
            conn.send_segs(20, 25);
            conn.peer_ack_segs(25);
            for _ in 0..3 {
                conn.guest_gets(with_dsack(&conn, 25, twice.clone()));
            }
            assert_eq!(windows(&conn).1, 10, "{twice:?}");
            conn.guest_gets(with_dsack(&conn, 25, 3..4));
            assert_eq!(windows(&conn).1, 10, "one of two");
            conn.guest_gets(with_dsack(&conn, 25, 7..8));
            assert_eq!(windows(&conn), (20, 20));
        }
    }
}

#[test]
fn undo_is_the_default() {
    assert_eq!(Params::default().0.undo, 1);
}
