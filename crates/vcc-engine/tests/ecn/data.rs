//! ECN on data and ACKs, for a guest without ECN.

use super::*;

#[test]
fn ect_goes_on_new_data_only() {
    for isn in ISNS {
        let mut conn = Conn::established(Params::default(), isn);
        assert!(is_not_ect(&conn.guest_acks(0)), "a pure ACK: RFC 3168, 6.1.4");
        assert!(is_ect0(&conn.send(0, 1000)));
        assert!(is_ect0(&conn.send(1000, 1000)));
        assert!(is_not_ect(&conn.send(0, 1000)), "a retransmission: RFC 3168, 6.1.5");
        assert!(is_not_ect(&conn.send(1000, 1000)), "a tail probe is a retransmission");
        assert!(is_not_ect(&conn.guest_sends(seg().seq(conn.seq(2000)).rst())));
    }
}

#[test]
fn a_super_segment_is_marked_whole() {
    let mut conn = Conn::established(Params::default(), 5);
    let mss_bytes = conn.mss();
    assert!(is_ect0(&conn.guest_sends(conn.data(0, 8 * mss_bytes).cut(mss_bytes))));
}

#[test]
fn a_segment_that_starts_with_old_data_is_a_retransmission() {
    // A guest may put retransmitted and new data into one segment.
    let mut conn = Conn::established(Params::default(), 5);
    conn.send(0, 500);
    assert!(is_not_ect(&conn.send(0, 1000)));
    assert_eq!(conn.flow.snd_nxt, conn.seq(1000));
}

#[test]
fn bare_fin_is_neither_ect_nor_cwr() {
    // ECT is for data packets (RFC 3168, 6.1.2). Linux sends a FIN without data as Not-ECT.
    let mut conn = Conn::established(Params::default(), 5);
    conn.send_segs(0, 4);
    conn.guest_gets(conn.ack(2 * conn.mss()).ece());
    let fin = conn.guest_sends(conn.data(4 * conn.mss(), 0).fin());
    assert!(is_not_ect(&fin));
    assert!(lacks_flags(&fin, sys::TCP_CWR));
}

#[test]
fn cwr_goes_once_on_the_next_new_data() {
    for isn in ISNS {
        let mut conn = Conn::established(Params::default(), isn);
        let mss_bytes = conn.mss();
        conn.send_segs(0, 4);
        conn.guest_gets(conn.ack(mss_bytes).ece());
        assert!(lacks_flags(&conn.guest_acks(0), sys::TCP_CWR), "not on a pure ACK");
        assert!(lacks_flags(&conn.send(mss_bytes, mss_bytes), sys::TCP_CWR), "not when repeated");
        assert!(has_flags(&conn.send(4 * mss_bytes, mss_bytes), sys::TCP_CWR));
        assert!(lacks_flags(&conn.send(5 * mss_bytes, mss_bytes), sys::TCP_CWR));
    }
}

#[test]
fn at_most_one_reduction_per_window() {
    for isn in ISNS {
        let mut conn = Conn::established(Params::default(), isn);
        conn.send_segs(0, 8);
        conn.guest_gets(conn.ack(conn.mss()).ece());
        assert_eq!((conn.flow.reductions, conn.flow.cc.ssthresh_segs), (1, 5));
        let recover_segs = 8;
        conn.send_segs(recover_segs, 12);
        for segs in 2..=recover_segs {
            conn.guest_gets(conn.ack(segs * conn.mss()).ece());
            assert_eq!(conn.flow.reductions, 1, "up to and including `recover`: the same window");
        }
        // The first data after the reduction carried CWR; ECE beyond it is a new mark.
        conn.guest_gets(conn.ack((recover_segs + 1) * conn.mss()).ece());
        assert_eq!((conn.flow.reductions, conn.flow.cc.ssthresh_segs), (2, 2));
        assert_eq!(conn.flow.marks, 9);
    }
}

#[test]
fn after_a_reduction_cwnd_is_ssthresh() {
    for prr in [0, 1] {
        let mut conn = Conn::established(params(|p| p.prr = prr), 5);
        conn.send_segs(0, 10);
        conn.guest_gets(conn.ack(conn.mss()).ece());
        conn.send_segs(10, 11);
        conn.peer_ack_segs(10);
        assert!(conn.cwnd() <= 5);
        conn.peer_ack_segs(11);
        assert_eq!(conn.cwnd(), 5, "prr: {prr}");
        assert_eq!(u32::from(conn.flow.ca_state), sys::CA_OPEN);
    }
}

#[test]
fn without_prr_the_window_halves_at_once() {
    let mut conn = Conn::established(params(|p| p.prr = 0), 5);
    conn.send_segs(0, 10);
    conn.guest_gets(conn.ack(conn.mss()).ece());
    assert_eq!(conn.cwnd(), 5);
}

#[test]
fn ece_is_hidden_from_the_guest() {
    let mut conn = Conn::established(Params::default(), 5);
    conn.send_segs(0, 2);
    let ack = conn.guest_gets(conn.ack(conn.mss()).ece());
    assert!(lacks_flags(&ack, ECN_BITS));
    let data = conn.guest_gets(conn.ack(conn.mss()).len(100).ece().cwr().ce());
    assert!(lacks_flags(&data, ECN_BITS));
    assert!(is_not_ect(&data));
    // Also on segments that the guest will discard.
    let beyond = conn.guest_gets(conn.ack(1 << 20).ece().cwr().ce());
    assert!(lacks_flags(&beyond, ECN_BITS));
    assert!(is_not_ect(&beyond));
}

#[test]
fn receiver_half_latches_until_cwr() {
    let mut conn = Conn::established(Params::default(), 5);
    let from_peer = |conn: &Conn, offset| conn.ack(0).seq(conn.peer_seq(offset)).len(1000);
    assert!(lacks_flags(&conn.guest_acks(0), sys::TCP_ECE));
    conn.guest_gets(from_peer(&conn, 0).ect0());
    assert!(lacks_flags(&conn.guest_acks(1000), sys::TCP_ECE), "ECT is no mark");
    conn.guest_gets(from_peer(&conn, 1000).ce());
    for _ in 0..3 {
        assert!(has_flags(&conn.guest_acks(2000), sys::TCP_ECE), "on every ACK");
    }
    assert!(has_flags(&conn.send(0, 100), sys::TCP_ECE), "on data too");
    conn.guest_gets(from_peer(&conn, 2000).ect0());
    assert!(has_flags(&conn.guest_acks(3000), sys::TCP_ECE), "only CWR releases the latch");
    conn.guest_gets(from_peer(&conn, 3000).ect0().cwr());
    assert!(lacks_flags(&conn.guest_acks(4000), sys::TCP_ECE));
}

#[test]
fn cwr_and_ce_on_one_segment_is_a_new_mark() {
    // CWR answers earlier marks; CE is this segment's own (RFC 3168, 6.1.3).
    let mut conn = Conn::established(Params::default(), 5);
    conn.guest_gets(conn.ack(0).len(1000).ce());
    conn.guest_gets(conn.ack(0).len(1000).ce().cwr());
    assert!(has_flags(&conn.guest_acks(2000), sys::TCP_ECE));
}

#[test]
fn a_rst_echoes_nothing() {
    let mut conn = Conn::established(Params::default(), 5);
    conn.guest_gets(conn.ack(0).len(1000).ce());
    let rst = conn.guest_sends(seg().seq(conn.seq(0)).ack(conn.peer_seq(1000)).rst());
    assert!(lacks_flags(&rst, sys::TCP_ECE));
}

#[test]
fn without_ecn_on_the_fabric_nothing_is_marked_or_echoed() {
    let mut conn = Conn::new(Params::default(), 5);
    conn.guest_syn(linux_syn());
    conn.peer_synack(linux_syn());
    assert!(is_not_ect(&conn.send(0, 1000)));
    conn.guest_gets(conn.ack(0).len(1000).ce());
    assert!(lacks_flags(&conn.guest_acks(1000), sys::TCP_ECE));
    conn.guest_gets(conn.ack(1000).ece());
    assert_eq!(conn.flow.reductions, 0);
}

#[test]
fn ece_on_an_old_ack_reduces_nothing() {
    // Reordered behind the ACK that ended the reduction, it echoes marks already answered (Linux:
    // old_ack). An off-path attacker could slow a flow down with old ACKs.
    let mut conn = Conn::established(Params::default(), 5);
    conn.send_segs(0, 4);
    conn.guest_gets(conn.ack(conn.mss()).ece());
    conn.send_segs(4, 6);
    conn.peer_ack_segs(5);
    assert_eq!(conn.flow.reductions, 1);
    conn.guest_gets(conn.ack(2 * conn.mss()).ece());
    assert_eq!(conn.flow.reductions, 1);
    let ssthresh_segs = conn.flow.cc.ssthresh_segs;
    conn.guest_gets(seg().ack(conn.seq(0).wrapping_sub(1 << 30)).ece().win(1));
    assert_eq!(conn.flow.cc.ssthresh_segs, ssthresh_segs);
}

#[test]
fn ecn_of_a_guest_that_negotiated_none_does_not_leak() {
    // A guest whose congestion control wants ECN sends ECT without having negotiated it.
    let mut conn = Conn::established(Params::default(), 5);
    conn.send(0, 1000);
    let again = conn.guest_sends(conn.data(0, 1000).ect0());
    assert!(is_not_ect(&again), "retransmission");
    let ack = conn.guest_sends(conn.data(1000, 0).ect1().ece().cwr().ae());
    assert!(is_not_ect(&ack), "pure ACK");
    assert!(lacks_flags(&ack, ECN_BITS));
    let new = conn.guest_sends(conn.data(1000, 1000).ect1().cwr());
    assert!(is_ect0(&new));
    assert!(lacks_flags(&new, sys::TCP_CWR), "nothing was reduced");
}

/// What a guest may write into the ECN field of `segment`, with ECN's flags.
fn forms(segment: Seg) -> [Seg; 4] {
    [segment, segment.ect0(), segment.ect1().cwr(), segment.ce().ece().ae()]
}

/// Law 5: what leaves carries the ECN that was negotiated with the peer, whatever the guest wrote.
#[test]
fn without_ecn_on_the_fabric_nothing_leaves_as_ect() {
    let overriding = |name: &str| {
        let mut params = underlay(name);
        params.0.guest_ecn = GuestEcn::Override.number();
        params
    };
    for params in [overriding("cubic"), overriding("reno-ecn"), overriding("dctcp")] {
        for isn in ISNS {
            let mut conn = Conn::new(params, isn);
            for syn in forms(linux_syn()) {
                assert!(is_not_ect(&conn.guest_syn(syn)), "SYN");
            }
            conn.peer_synack(linux_syn());
            let sent = [conn.ack(0), conn.data(0, 1000), conn.data(0, 1000), conn.data(0, 2000)];
            let last = [conn.data(2000, 0).fin(), conn.data(2001, 0).rst()];
            for segment in sent.into_iter().chain(last).flat_map(forms) {
                let left = conn.guest_sends(segment);
                assert!(is_not_ect(&left), "{segment:?}");
                assert!(segment.0.flags & sys::TCP_RST as u16 != 0 || lacks_flags(&left, ECN_BITS));
            }
        }
    }
}

#[test]
fn no_mark_of_the_guests_own_leaves() {
    for (name, always) in [("reno-ecn", false), ("dctcp", true)] {
        let mut params = underlay(name);
        params.0.guest_ecn = GuestEcn::Override.number();
        params.0.accecn = 0;
        for syn in [linux_syn(), linux_syn().asking_ecn()] {
            let mut conn = Conn::opened(params, 5, syn, linux_syn());
            for new in forms(conn.data(0, 1000)).into_iter().zip([0, 1000, 2000, 3000]) {
                let left = conn.guest_sends(new.0.seq(conn.seq(new.1)));
                assert!(is_ect0(&left), "new data: {:?}", new.0);
            }
            let others = [conn.data(1000, 1000), conn.ack(0), conn.data(4000, 0).fin()];
            for segment in others.into_iter().flat_map(forms) {
                let left = conn.guest_sends(segment);
                assert_eq!((is_ect0(&left), is_not_ect(&left)), (always, !always), "{segment:?}");
            }
        }
    }
}

/// After a fallback, and on a released flow, nobody would answer marks.
#[test]
fn where_nobody_answers_marks_the_guests_ect_does_not_leave() {
    let mut params = underlay("reno-ecn");
    params.0.guest_ecn = GuestEcn::Override.number();
    for flag in [sys::FLOW_ECN_FELL_BACK, sys::FLOW_UNHEARD, sys::FLOW_RELEASED] {
        let mut conn = Conn::opened(params, 5, linux_syn().asking_ecn(), linux_syn());
        conn.flow.0.flags |= flag;
        for segment in forms(conn.data(0, 1000)).into_iter().chain(forms(conn.ack(0))) {
            assert!(is_not_ect(&conn.guest_sends(segment)), "{segment:?}");
        }
    }
}

/// Data right behind the guest's SYN-ACK (RFC 7413), or on its SYN.
#[test]
fn data_of_a_handshake_is_not_ect() {
    for name in ["cubic", "reno-ecn"] {
        let mut conn = Conn::new(underlay(name), 5);
        conn.peer_syn(linux_syn());
        conn.guest_synack(linux_syn());
        for early in forms(conn.data(0, 1000)) {
            assert!(is_not_ect(&conn.guest_sends(early)), "{early:?}");
        }
        let mut conn = Conn::new(underlay(name), 5);
        assert!(is_not_ect(&conn.guest_syn(linux_syn().len(1000).ce())));
    }
}

#[test]
fn in_shadow_mode_the_ecn_field_stays() {
    let mut conn = Conn::established(params(|p| p.mode = Mode::Shadow.number()), 5);
    for segment in forms(conn.data(0, 1000)) {
        assert_untouched(&conn.guest_sends(segment), &segment.0);
    }
}
