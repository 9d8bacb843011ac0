//! ECN: what the fabric sees, what the guest sees (RFC 3168; law 5), and one reduction a window
//! (law 6).

use crate::common::*;
use vcc_engine::{GuestEcn, Params, sys};

const ECN_BITS: u32 = sys::TCP_AE | sys::TCP_CWR | sys::TCP_ECE;

fn override_guest() -> Params {
    params(|p| p.guest_ecn = GuestEcn::Override.number())
}

/// The ECN bits of a SYN-ACK.
fn answer_with(bits: u32) -> Seg {
    let mut answer = linux_syn();
    answer.0.flags |= bits as u16;
    answer
}

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
fn a_segment_that_begins_with_old_data_is_a_retransmission() {
    // A guest may put what it sends again and what is new into one segment.
    let mut conn = Conn::established(Params::default(), 5);
    conn.send(0, 500);
    assert!(is_not_ect(&conn.send(0, 1000)));
    assert_eq!(conn.flow.snd_nxt, conn.seq(1000));
}

#[test]
fn bare_fin_is_neither_ect_nor_cwr() {
    // RFC 3168, 6.1.2: data packets. Linux sends a FIN without data as not ECT.
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
fn one_reduction_a_window_strictly() {
    for isn in ISNS {
        let mut conn = Conn::established(Params::default(), isn);
        conn.send_segs(0, 8);
        conn.guest_gets(conn.ack(conn.mss()).ece());
        assert_eq!((conn.flow.reductions, conn.flow.cc.ssthresh_segs), (1, 5));
        let recover_segs = 8;
        conn.send_segs(recover_segs, 12);
        for segs in 2..=recover_segs {
            conn.guest_gets(conn.ack(segs * conn.mss()).ece());
            assert_eq!(conn.flow.reductions, 1, "up to and with `recover`: still that window");
        }
        // What was sent first after the reduction carried CWR; ECE beyond it is news.
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
    // Also on what the guest will not accept.
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
    assert!(has_flags(&conn.send(0, 100), sys::TCP_ECE), "on data, which acknowledges too");
    conn.guest_gets(from_peer(&conn, 2000).ect0());
    assert!(has_flags(&conn.guest_acks(3000), sys::TCP_ECE), "data without CWR releases nothing");
    conn.guest_gets(from_peer(&conn, 3000).ect0().cwr());
    assert!(lacks_flags(&conn.guest_acks(4000), sys::TCP_ECE));
}

#[test]
fn cwr_and_ce_on_one_segment_is_a_new_mark() {
    // RFC 3168, 6.1.3: CWR answers the marks before it, CE is the segment's own.
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
fn an_old_ack_with_ece_reduces_nothing() {
    // Reordered behind the ACK that ended the reduction, it tells of marks already answered
    // (Linux: old_ack). From off the path it would be a cheap way to slow a flow down.
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
fn what_the_guest_sends_of_its_own_does_not_leak() {
    // A guest whose algorithm wants ECN without having negotiated it marks everything.
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

#[test]
fn synacks_that_do_not_accept_classic_ecn() {
    // RFC 3168, 6.1.1: ECE alone accepts. Both bits reflect; the rest answers AccECN.
    for bits in [0, sys::TCP_CWR, sys::TCP_ECE | sys::TCP_CWR, ECN_BITS, sys::TCP_AE] {
        let mut conn = Conn::new(Params::default(), 5);
        conn.guest_syn(linux_syn());
        let answer = conn.peer_synack(answer_with(bits));
        assert!(!conn.flow.has(sys::FLOW_ECN_FABRIC), "bits {bits:#x}");
        assert!(lacks_flags(&answer, ECN_BITS), "the guest asked for nothing");
        assert!(conn.flow.is_managed());
        assert!(is_not_ect(&conn.send(0, 1000)));
    }
}

#[test]
fn an_ecn_guest_is_left_alone() {
    // It opens, or it listens.
    let opened = Conn::opened(Params::default(), 5, linux_syn().asking_ecn(), linux_syn());
    let accepted =
        Conn::accepted(Params::default(), 5, linux_syn().asking_ecn(), linux_syn().ece());
    for mut conn in [opened, accepted] {
        assert!(conn.flow.has(sys::FLOW_LEFT_ALONE) && conn.flow.has(sys::FLOW_ECN_GUEST));
        assert!(!conn.flow.is_managed());
        let data = conn.data(0, 1000).ect0().cwr().psh();
        assert_untouched(&conn.guest_sends(data), &data.0);
        let ack = conn.guest_gets(conn.ack(1000).len(10).ce().ece());
        assert!(has_flags(&ack, sys::TCP_ECE));
        assert_eq!(u32::from(ack.ip_ecn), sys::IP_ECN_CE);
        let offered_bytes = u32::from(PEER_WINDOW) << PEER_WSCALE;
        let most_bytes = u32::from(u16::MAX) << conn.flow.wscale_shown;
        assert_eq!(conn.shown_bytes(&ack), offered_bytes.min(most_bytes));
    }
}

#[test]
fn a_left_alone_guests_synack_is_untouched() {
    // At the SYN-ACK both sides are known: nothing needs to be bent.
    let mut conn = Conn::new(Params::default(), 5);
    conn.guest_syn(linux_syn().asking_ecn());
    let answer = linux_syn().ece().seq(PEER_ISS).ack(conn.seq(0));
    assert_untouched(&conn.guest_gets(answer), &answer.0);
    let ack = conn.ack(0);
    assert_untouched(&conn.guest_gets(ack), &ack.0);
}

#[test]
fn an_accecn_guest_is_left_alone_even_where_ecn_is_overridden_in_vain() {
    let bits_of_accecn_answers =
        [sys::TCP_CWR, sys::TCP_CWR | sys::TCP_ECE, sys::TCP_AE, sys::TCP_AE | sys::TCP_CWR];
    for bits in bits_of_accecn_answers {
        let mut conn = Conn::new(Params::default(), 5);
        let syn = conn.guest_syn(linux_syn().asking_accecn());
        assert!(has_flags(&syn, ECN_BITS), "its request passes");
        let answer = conn.peer_synack(answer_with(bits));
        assert!(has_flags(&answer, bits), "and so does the answer");
        assert!(conn.flow.has(sys::FLOW_LEFT_ALONE) && conn.flow.has(sys::FLOW_ACCECN_GUEST));
        let data = conn.data(0, 1000).ect0().ae().cwr();
        assert_untouched(&conn.guest_sends(data), &data.0);
    }
}

#[test]
fn an_accecn_guest_with_a_classic_peer_is_a_classic_guest() {
    // RFC 9768, 3.1.2.
    let conn = Conn::opened(Params::default(), 5, linux_syn().asking_accecn(), linux_syn());
    assert!(conn.flow.has(sys::FLOW_ECN_GUEST) && conn.flow.has(sys::FLOW_ECN_FABRIC));
    assert!(!conn.flow.has(sys::FLOW_ACCECN_GUEST));
    assert!(conn.flow.has(sys::FLOW_LEFT_ALONE));
}

#[test]
fn an_accecn_guest_whose_request_is_declined_has_no_ecn() {
    for bits in [0, ECN_BITS] {
        let mut conn = Conn::new(Params::default(), 5);
        conn.guest_syn(linux_syn().asking_accecn());
        conn.peer_synack(answer_with(bits));
        assert!(!conn.flow.has(sys::FLOW_ECN_GUEST) && !conn.flow.has(sys::FLOW_ECN_FABRIC));
        assert!(conn.flow.is_managed());
    }
}

#[test]
fn an_ecn_guest_is_overridden() {
    let opened = Conn::opened(override_guest(), 5, linux_syn().asking_ecn(), linux_syn());
    let accepted = Conn::accepted(override_guest(), 5, linux_syn().asking_ecn(), linux_syn().ece());
    for mut conn in [opened, accepted] {
        assert!(conn.flow.is_managed());
        assert!(conn.flow.has(sys::FLOW_ECN_GUEST) && conn.flow.has(sys::FLOW_ECN_FABRIC));
        conn.send_segs(0, 4);
        // The sender half is ours: it answers, the guest hears nothing of it.
        let ack = conn.guest_gets(conn.ack(conn.mss()).ece());
        assert!(lacks_flags(&ack, sys::TCP_ECE));
        assert_eq!(conn.flow.reductions, 1);
        assert!(has_flags(&conn.send(4 * conn.mss(), conn.mss()), sys::TCP_CWR));
        // The receiver half stays the guest's.
        let data = conn.guest_gets(conn.ack(conn.mss()).len(100).ce().cwr());
        assert_eq!(u32::from(data.ip_ecn), sys::IP_ECN_CE);
        assert!(has_flags(&data, sys::TCP_CWR));
        assert!(lacks_flags(&conn.guest_acks(100), sys::TCP_ECE), "it is not doubled");
        let echo = conn.guest_sends(conn.data(5 * conn.mss(), 0).ece());
        assert!(has_flags(&echo, sys::TCP_ECE), "nor swallowed");
    }
}

#[test]
fn an_overridden_accecn_guest_becomes_a_classic_one() {
    let mut conn = Conn::new(override_guest(), 5);
    let syn = conn.guest_syn(linux_syn().asking_accecn());
    assert!(lacks_flags(&syn, sys::TCP_AE) && has_flags(&syn, sys::TCP_ECE | sys::TCP_CWR));
    conn.peer_synack(linux_syn().ece());
    assert!(conn.flow.is_managed() && !conn.flow.has(sys::FLOW_ACCECN_GUEST));

    let mut conn = Conn::new(override_guest(), 5);
    let syn = conn.peer_syn(linux_syn().asking_accecn());
    assert!(lacks_flags(&syn, sys::TCP_AE) && has_flags(&syn, sys::TCP_ECE | sys::TCP_CWR));
}

#[test]
fn an_ecn_guest_falls_back_by_itself() {
    let mut conn = Conn::new(Params::default(), 5);
    conn.guest_syn(linux_syn().asking_ecn());
    let again = conn.guest_syn(linux_syn());
    assert!(lacks_flags(&again, ECN_BITS), "nor does vcc ask, however soon it comes");
    conn.peer_synack(linux_syn());
    assert!(!conn.flow.has(sys::FLOW_ECN_GUEST) && !conn.flow.has(sys::FLOW_ECN_FABRIC));
    assert!(conn.flow.is_managed());
}

#[test]
fn a_reflected_answer_to_a_classic_guest_is_no_accecn() {
    // A middlebox sends the SYN's bits back. The guest knows (RFC 3168, 6.1.1): it has no ECN.
    let mut conn = Conn::new(Params::default(), 5);
    conn.guest_syn(linux_syn().asking_ecn());
    conn.peer_synack(answer_with(sys::TCP_ECE | sys::TCP_CWR));
    assert!(!conn.flow.has(sys::FLOW_ACCECN_GUEST) && !conn.flow.has(sys::FLOW_ECN_GUEST));
    assert!(conn.flow.is_managed());
}

#[test]
fn a_listening_guest_that_reflects_has_no_ecn() {
    let mut conn = Conn::new(Params::default(), 5);
    conn.peer_syn(linux_syn().asking_ecn());
    let answer = conn.guest_synack(answer_with(sys::TCP_ECE | sys::TCP_CWR));
    assert!(has_flags(&answer, sys::TCP_ECE) && lacks_flags(&answer, sys::TCP_CWR | sys::TCP_AE));
    conn.peer_ack(0);
    assert!(conn.flow.is_managed() && conn.flow.has(sys::FLOW_ECN_FABRIC));
}

#[test]
fn a_listening_guest_without_ecn_gets_it_from_us_only_if_the_peer_asks() {
    for (syn, bits) in [
        (linux_syn(), 0),
        (linux_syn().asking_ecn(), sys::TCP_ECE),
        // A classic answer to AccECN makes the peer a classic one (RFC 9768, 3.1.2).
        (linux_syn().asking_accecn(), sys::TCP_ECE),
        (linux_syn().ece(), 0),
        (linux_syn().cwr(), 0),
    ] {
        let mut conn = Conn::new(Params::default(), 5);
        conn.peer_syn(syn);
        let answer = conn.guest_synack(linux_syn());
        assert_eq!(u32::from(answer.flags) & ECN_BITS, bits);
        assert!(is_not_ect(&answer));
        assert_eq!(conn.flow.has(sys::FLOW_ECN_FABRIC), bits != 0);
    }
}

#[test]
fn a_peer_that_falls_back_gets_an_answer_without_ecn() {
    let mut conn = Conn::new(Params::default(), 5);
    conn.peer_syn(linux_syn().asking_ecn());
    conn.peer_syn(linux_syn());
    let answer = conn.guest_synack(linux_syn());
    assert!(lacks_flags(&answer, ECN_BITS));
    conn.peer_ack(0);
    assert!(!conn.flow.has(sys::FLOW_ECN_FABRIC));
}

#[test]
fn an_accecn_listener_answers_an_accecn_peer() {
    let mut conn = Conn::new(Params::default(), 5);
    conn.peer_syn(linux_syn().asking_accecn());
    let answer = conn.guest_synack(answer_with(sys::TCP_CWR));
    assert_eq!(u32::from(answer.flags) & ECN_BITS, sys::TCP_CWR);
    conn.peer_ack(0);
    assert!(conn.flow.has(sys::FLOW_LEFT_ALONE) && conn.flow.has(sys::FLOW_ACCECN_GUEST));
}

#[test]
fn underlays_without_ecn_ask_for_none() {
    for underlay in ["reno", "transparent"] {
        let plain =
            params(|p| p.underlay = underlay.parse::<vcc_engine::Underlay>().unwrap().number());
        let mut conn = Conn::new(plain, 5);
        assert!(lacks_flags(&conn.guest_syn(linux_syn()), ECN_BITS));
        conn.peer_synack(linux_syn());
        assert!(is_not_ect(&conn.send(0, 1000)), "{underlay}");
        let mut conn = Conn::new(plain, 5);
        conn.peer_syn(linux_syn().asking_ecn());
        assert!(lacks_flags(&conn.guest_synack(linux_syn()), ECN_BITS), "{underlay}");
    }
}

#[test]
fn guest_cwrs_are_counted() {
    let mut conn = Conn::opened(Params::default(), 5, linux_syn().asking_ecn(), linux_syn());
    conn.guest_sends(conn.data(0, 1000).cwr());
    conn.guest_sends(conn.data(1000, 1000));
    assert_eq!(conn.flow.guest_cwrs, 1);
}

#[test]
fn an_underlay_led_by_loss_keeps_a_peers_request_from_the_guest() {
    // A guest that accepts ECN from whoever asks (Linux does) would be out of its control.
    for name in ["cubic", "reno"] {
        for syn in [
            linux_syn().asking_ecn(),
            linux_syn().asking_ecn().ect0(),
            linux_syn().asking_accecn(),
            linux_syn().asking_ecn().offer(),
        ] {
            let mut conn = Conn::new(underlay(name), 5);
            for _ in 0..2 {
                let shown = conn.peer_syn(syn);
                assert!(lacks_flags(&shown, ECN_BITS) && is_not_ect(&shown), "{name}");
            }
            let answer = conn.guest_synack(linux_syn());
            assert!(lacks_flags(&answer, ECN_BITS), "{name}");
            assert!(lacks_flags(&conn.peer_syn(syn), ECN_BITS), "{name}: a copy");
            conn.peer_ack(0);
            assert!(conn.flow.is_managed() && !conn.flow.has(sys::FLOW_ECN_FABRIC), "{name}");
            assert!(is_not_ect(&conn.send(0, 1000)));
        }
        // In shadow mode nothing is changed, and who asks for ECN itself is asked about by rule.
        let shadow = params(|p| {
            p.underlay = name.parse::<vcc_engine::Underlay>().unwrap().number();
            p.mode = vcc_engine::Mode::Shadow.number();
        });
        let syn = linux_syn().asking_ecn();
        assert_untouched(&Conn::new(shadow, 5).guest_gets(syn), &syn.0);
        let conn = Conn::opened(underlay(name), 5, linux_syn().asking_ecn(), linux_syn());
        assert!(!conn.flow.is_managed(), "{name}: its own choice");
    }
}
