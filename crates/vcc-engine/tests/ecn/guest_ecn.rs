//! Guests that use ECN or AccECN themselves.

use super::*;

fn override_guest() -> Params {
    params(|p| p.guest_ecn = GuestEcn::Override.number())
}

#[test]
fn an_ecn_guest_is_left_alone() {
    // The guest is the active opener, then the passive one.
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
    // At the SYN-ACK, both sides are known: no value needs rewriting.
    let mut conn = Conn::new(Params::default(), 5);
    conn.guest_syn(linux_syn().asking_ecn());
    let answer = linux_syn().ece().seq(PEER_ISS).ack(conn.seq(0));
    assert_untouched(&conn.guest_gets(answer), &answer.0);
    let ack = conn.ack(0);
    assert_untouched(&conn.guest_gets(ack), &ack.0);
}

#[test]
fn an_accecn_guest_is_left_alone_if_override_fails() {
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
        // The sender half answers ECE; the guest does not see it.
        let ack = conn.guest_gets(conn.ack(conn.mss()).ece());
        assert!(lacks_flags(&ack, sys::TCP_ECE));
        assert_eq!(conn.flow.reductions, 1);
        assert!(has_flags(&conn.send(4 * conn.mss(), conn.mss()), sys::TCP_CWR));
        // The receiver half remains the guest's.
        let data = conn.guest_gets(conn.ack(conn.mss()).len(100).ce().cwr());
        assert_eq!(u32::from(data.ip_ecn), sys::IP_ECN_CE);
        assert!(has_flags(&data, sys::TCP_CWR));
        assert!(lacks_flags(&conn.guest_acks(100), sys::TCP_ECE), "no second echo");
        let echo = conn.guest_sends(conn.data(5 * conn.mss(), 0).ece());
        assert!(has_flags(&echo, sys::TCP_ECE), "the guest's own echo passes");
    }
}

#[test]
fn an_overridden_accecn_guest_becomes_a_classic_one() {
    let mut classic = override_guest();
    classic.0.accecn = 0;
    let mut conn = Conn::new(classic, 5);
    let syn = conn.guest_syn(linux_syn().asking_accecn());
    assert!(lacks_flags(&syn, sys::TCP_AE) && has_flags(&syn, sys::TCP_ECE | sys::TCP_CWR));
    conn.peer_synack(linux_syn().ece());
    assert!(conn.flow.is_managed() && !conn.flow.has(sys::FLOW_ACCECN_GUEST));

    let mut conn = Conn::new(override_guest(), 5);
    let syn = conn.peer_syn(linux_syn().asking_accecn());
    assert!(lacks_flags(&syn, sys::TCP_AE) && has_flags(&syn, sys::TCP_ECE | sys::TCP_CWR));
}

#[test]
fn an_ecn_guest_falls_back_on_its_own() {
    let mut conn = Conn::new(Params::default(), 5);
    conn.guest_syn(linux_syn().asking_ecn());
    let again = conn.guest_syn(linux_syn());
    assert!(
        lacks_flags(&again, ECN_BITS),
        "vcc does not request ECN, however soon the SYN follows"
    );
    conn.peer_synack(linux_syn());
    assert!(!conn.flow.has(sys::FLOW_ECN_GUEST) && !conn.flow.has(sys::FLOW_ECN_FABRIC));
    assert!(conn.flow.is_managed());
}

#[test]
fn a_reflected_answer_to_a_classic_guest_is_no_accecn() {
    // A middlebox reflects the SYN's bits. The guest recognises that (RFC 3168, 6.1.1) and has no
    // ECN.
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
fn an_accecn_listener_answers_an_accecn_peer() {
    let mut conn = Conn::new(Params::default(), 5);
    conn.peer_syn(linux_syn().asking_accecn());
    let answer = conn.guest_synack(answer_with(sys::TCP_CWR));
    assert_eq!(u32::from(answer.flags) & ECN_BITS, sys::TCP_CWR);
    conn.peer_ack(0);
    assert!(conn.flow.has(sys::FLOW_LEFT_ALONE) && conn.flow.has(sys::FLOW_ACCECN_GUEST));
}

#[test]
fn guest_cwrs_are_counted() {
    let mut conn = Conn::opened(Params::default(), 5, linux_syn().asking_ecn(), linux_syn());
    conn.guest_sends(conn.data(0, 1000).cwr());
    conn.guest_sends(conn.data(1000, 1000));
    assert_eq!(conn.flow.guest_cwrs, 1);
}
