//! Shadow mode: everything is computed, nothing is changed (law 11).

use crate::common::*;
use vcc_engine::{Mode, Params, sys};

fn shadow() -> Params {
    params(|p| p.mode = Mode::Shadow.number())
}

#[test]
fn handshakes_are_unchanged() {
    let kinds = [
        linux_syn(),
        linux_syn().asking_ecn(),
        linux_syn().asking_accecn(),
        linux_syn().wscale(15).mss(8960),
        linux_syn().without(sys::OPT_WSCALE),
    ];
    let answers = [
        linux_syn(),
        linux_syn().ece(),
        linux_syn().ece().cwr(),
        linux_syn().wscale(200),
        linux_syn().mss(9000),
        linux_syn().without(sys::OPT_WSCALE).wscale(9),
    ];
    for syn in kinds {
        for answer in answers {
            let mut conn = Conn::new(shadow(), 5);
            // Everything twice: retransmissions are unchanged too.
            for _ in 0..2 {
                assert_untouched(&conn.guest_syn(syn), &syn.0);
            }
            for _ in 0..2 {
                assert_untouched(&conn.peer_synack(answer), &answer.ack(0).0);
            }
            let mut conn = Conn::new(shadow(), 5);
            for _ in 0..2 {
                assert_untouched(&conn.peer_syn(syn), &syn.0);
            }
            for _ in 0..2 {
                assert_untouched(&conn.guest_synack(answer), &answer.ack(0).0);
            }
        }
    }
}

#[test]
fn data_and_acks_are_unchanged() {
    let mut conn = Conn::opened(shadow(), 5, linux_syn().asking_ecn(), linux_syn());
    let mss_bytes = conn.mss();
    for number in 0..12 {
        let data = conn.data(number * mss_bytes, mss_bytes).ect0().psh();
        assert_untouched(&conn.guest_sends(data), &data.0);
    }
    for segs in [1, 2, 2, 2, 2, 3] {
        let ack = conn.ack(segs * mss_bytes).ece();
        assert_untouched(&conn.guest_gets(ack), &ack.0);
    }
    // A window update below the flight, which enforcement would drop.
    let update = conn.ack(3 * mss_bytes).win(PEER_WINDOW + 9);
    assert_untouched(&conn.guest_gets(update), &update.0);
    let old = conn.ack(mss_bytes).ece().ce();
    assert_untouched(&conn.guest_gets(old), &old.0);
    let again = conn.data(3 * mss_bytes, mss_bytes);
    assert_untouched(&conn.guest_sends(again), &again.0);
    let ce = conn.ack(3 * mss_bytes).len(100).ce().cwr();
    assert_untouched(&conn.guest_gets(ce), &ce.0);
    let echo = conn.data(12 * mss_bytes, 0).ece();
    assert_untouched(&conn.guest_sends(echo), &echo.0);
    assert_eq!(conn.flow.drops, 0);
}

#[test]
fn reductions_are_computed_for_a_native_ecn_sender() {
    let mut conn = Conn::opened(shadow(), 5, linux_syn().asking_ecn(), linux_syn());
    assert!(conn.flow.is_managed() && conn.flow.has(sys::FLOW_ECN_FABRIC));
    conn.send_segs(0, 10);
    conn.guest_gets(conn.ack(conn.mss()).ece());
    assert_eq!((conn.flow.reductions, conn.flow.cc.ssthresh_segs), (1, 5));
    let cwr = conn.guest_sends(conn.data(10 * conn.mss(), conn.mss()).cwr());
    assert!(has_flags(&cwr, sys::TCP_CWR), "the guest's own");
    assert_eq!(conn.flow.guest_cwrs, 1);
}

#[test]
fn a_guest_without_ecn_gets_none() {
    let mut conn = Conn::new(shadow(), 5);
    let syn = conn.guest_syn(linux_syn());
    assert!(lacks_flags(&syn, sys::TCP_ECE | sys::TCP_CWR));
    conn.peer_synack(linux_syn());
    assert!(is_not_ect(&conn.send(0, 1000)));
    assert!(!conn.flow.has(sys::FLOW_ECN_FABRIC));
}
