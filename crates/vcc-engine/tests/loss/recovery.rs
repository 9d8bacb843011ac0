//! Duplicate ACKs and fast recovery (RFC 5681, 3.2; RFC 6582).

use super::*;

#[test]
fn the_third_duplicate_is_a_loss() {
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
    // No second fast retransmit for one window (RFC 6582, 3.2, step 3).
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
fn a_retransmission_before_any_duplicate_is_a_loss() {
    for isn in ISNS {
        let mut conn = in_flight(isn, 10);
        conn.send_segs(3, 4);
        assert_eq!((state(&conn), conn.flow.reductions), (sys::CA_RECOVERY, 1));
    }
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
    assert_eq!(state(&conn), sys::CA_RECOVERY, "the flight at the loss counts");
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
fn cwr_announces_a_reduction_for_loss() {
    // For any reason (RFC 3168, 6.1.2).
    let mut conn = in_flight(5, 10);
    for _ in 0..3 {
        conn.peer_ack_segs(1);
    }
    assert!(lacks_flags(&conn.send(conn.mss(), conn.mss()), sys::TCP_CWR), "not when repeated");
    assert!(has_flags(&conn.send(11 * conn.mss(), conn.mss()), sys::TCP_CWR));
}

/// The ACK that ends a recovery also acknowledges bytes that duplicate ACKs have counted.
#[test]
fn the_end_of_a_recovery_grows_cwnd_by_newly_delivered_bytes() {
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
