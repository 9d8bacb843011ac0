//! Negotiation of ECN on behalf of the guest.

use super::*;

#[test]
fn synacks_that_do_not_accept_classic_ecn() {
    // RFC 3168, 6.1.1: ECE without CWR accepts. Both bits are a reflection; other combinations
    // answer AccECN, for which nobody has asked.
    for bits in [0, sys::TCP_CWR, sys::TCP_ECE | sys::TCP_CWR, ECN_BITS, sys::TCP_AE] {
        let mut conn = Conn::new(params(|p| p.accecn = 0), 5);
        conn.guest_syn(linux_syn());
        let answer = conn.peer_synack(answer_with(bits));
        assert!(!conn.flow.has(sys::FLOW_ECN_FABRIC), "bits {bits:#x}");
        assert!(lacks_flags(&answer, ECN_BITS), "the guest requested no ECN");
        assert!(conn.flow.is_managed());
        assert!(is_not_ect(&conn.send(0, 1000)));
    }
}

#[test]
fn vcc_accepts_ecn_for_a_listening_guest_only_on_request() {
    for (syn, bits) in [
        (linux_syn(), 0),
        (linux_syn().asking_ecn(), sys::TCP_ECE),
        // A classic answer to AccECN makes the peer a classic one (RFC 9768, 3.1.2).
        (linux_syn().asking_accecn(), sys::TCP_ECE),
        (linux_syn().ece(), 0),
        (linux_syn().cwr(), 0),
    ] {
        let mut conn = Conn::new(params(|p| p.accecn = 0), 5);
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
fn underlays_without_ecn_request_none() {
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
fn a_loss_based_underlay_hides_the_peers_ecn_request() {
    // A guest that accepts ECN (Linux does by default) would escape its control.
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
        // Shadow mode changes nothing, and a guest's own request is governed by guest_ecn.
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
