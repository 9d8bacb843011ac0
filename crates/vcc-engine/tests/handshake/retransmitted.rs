//! Retransmitted SYNs and SYN-ACKs, and fallback from ECN (RFC 3168, 6.1.1.1).

use super::*;

#[test]
fn retransmitted_syn_goes_without_ecn() {
    // RFC 3168, 6.1.1.1.
    let mut conn = Conn::new(Params::default(), 5);
    let first = conn.guest_syn(linux_syn());
    assert!(has_flags(&first, sys::TCP_ECE | sys::TCP_CWR));
    assert!(is_not_ect(&first), "RFC 3168, 6.1.1: no ECT on a SYN");
    for _ in 0..3 {
        let again = conn.wait_us(1_000_000).guest_syn(linux_syn());
        assert!(lacks_flags(&again, ECN_BITS));
    }
    assert!(conn.flow.has(sys::FLOW_ECN_FELL_BACK));
    conn.peer_synack(linux_syn());
    assert!(!conn.flow.has(sys::FLOW_ECN_FABRIC));
    assert!(conn.flow.is_managed(), "the underlay still reacts to loss");
}

#[test]
fn late_answer_to_the_first_syn_after_falling_back() {
    // vcc has sent a SYN without ECN, so it must not send ECT (RFC 3168, 6.1.1).
    let mut conn = Conn::new(Params::default(), 5);
    conn.guest_syn(linux_syn());
    conn.wait_us(1_000_000).guest_syn(linux_syn());
    let answer = conn.peer_synack(linux_syn().ece());
    assert!(lacks_flags(&answer, ECN_BITS), "the guest requested no ECN");
    assert!(is_not_ect(&conn.send(0, 1000)));
    // The peer sends ECT. The guest must not see marks (law 5), but they must be echoed, which is
    // permitted.
    let data = conn.guest_gets(conn.ack(0).len(1000).ect0());
    assert!(is_not_ect(&data));
    assert!(lacks_flags(&conn.guest_acks(1000), sys::TCP_ECE));
    let data = conn.guest_gets(conn.ack(0).seq(conn.peer_seq(1000)).len(1000).ce());
    assert!(is_not_ect(&data));
    assert!(has_flags(&conn.guest_acks(2000), sys::TCP_ECE));
    let data = conn.guest_gets(conn.ack(0).seq(conn.peer_seq(2000)).len(1000).ect0().cwr());
    assert!(lacks_flags(&data, ECN_BITS));
    assert!(lacks_flags(&conn.guest_acks(3000), sys::TCP_ECE));
    for number in 1..20 {
        conn.guest_gets(conn.ack(0).seq(conn.peer_seq(3000)).ece());
        let new = conn.send(number * 1000, 1000);
        assert!(is_not_ect(&new) && lacks_flags(&new, sys::TCP_CWR));
    }
}

#[test]
fn a_new_connection_requests_ecn_again() {
    let mut conn = Conn::new(Params::default(), 5);
    conn.guest_syn(linux_syn());
    conn.wait_us(1_000_000).guest_syn(linux_syn());
    // The guest gave up and reuses the port with another ISN.
    conn.guest_iss = 99_999;
    assert!(has_flags(&conn.guest_syn(linux_syn()), sys::TCP_ECE | sys::TCP_CWR));
    assert!(!conn.flow.has(sys::FLOW_ECN_FELL_BACK));
    conn.peer_synack(linux_syn().ece());
    assert!(conn.flow.has(sys::FLOW_ECN_FABRIC));
    assert_eq!(conn.flow.snd_una, conn.seq(0));
}

#[test]
fn a_retransmitted_synack_is_rewritten_as_the_first() {
    for answer in [linux_syn().ece(), linux_syn().mss(8960), linux_syn().wscale(2)] {
        let mut conn = Conn::new(Params::default(), 5);
        conn.guest_syn(linux_syn().mss(8960));
        let first = conn.peer_synack(answer);
        let state = conn.flow;
        let again = conn.peer_synack(answer);
        assert_same_rewriting(&first, &again);
        assert_eq!(conn.flow.mss_bytes, state.mss_bytes);
        assert_eq!(conn.flow.wscale_shown, state.wscale_shown);
    }
}

#[test]
fn a_retransmitted_syn_of_the_peer_is_rewritten_as_the_first() {
    let syn = linux_syn().mss(8960).asking_ecn();
    let mut conn = Conn::new(Params::default(), 5);
    let first = conn.peer_syn(syn);
    assert_same_rewriting(&first, &conn.peer_syn(syn));
    let answer = conn.guest_synack(linux_syn().mss(8960));
    assert!(has_flags(&answer, sys::TCP_ECE));
    assert_same_rewriting(&first, &conn.peer_syn(syn));
    assert_same_rewriting(&answer, &conn.guest_synack(linux_syn().mss(8960)));
    conn.peer_ack(0);
    assert!(conn.flow.has(sys::FLOW_ECN_FABRIC));
    assert_eq!(u32::from(conn.flow.stage), sys::STAGE_ESTABLISHED);
}

#[test]
fn a_retransmitted_syn_after_a_lost_synack() {
    let mut conn = Conn::new(Params::default(), 5);
    conn.guest_syn(linux_syn());
    conn.peer_synack(linux_syn().ece());
    conn.wait_us(1_000_000).guest_syn(linux_syn());
    conn.peer_synack(linux_syn().ece());
    conn.guest_acks(0);
    assert_eq!(u32::from(conn.flow.stage), sys::STAGE_ESTABLISHED);
    assert!(conn.flow.is_managed());
}

#[test]
fn a_retransmitted_synack_after_the_last_ack_was_lost_behind_the_port() {
    let mut conn =
        Conn::accepted(Params::default(), 5, linux_syn().asking_ecn(), linux_syn().wscale(7));
    let again = conn.wait_us(1_000_000).guest_synack(linux_syn().wscale(7));
    assert_eq!(again.forget, 0, "the guest's scale is rewritten");
    assert!(has_flags(&again, sys::TCP_ECE), "as the first");
    assert!(conn.flow.is_managed());
}

#[test]
fn a_retransmitted_synack_after_data_was_lost_behind_the_port() {
    let mut conn = Conn::accepted(Params::default(), 5, linux_syn().asking_ecn(), linux_syn());
    // The port has seen the peer's data; the guest has seen neither that nor the ACK before it.
    conn.guest_gets(conn.ack(0).len(100_000));
    let again = conn.wait_us(1_000_000).guest_synack(linux_syn());
    assert_eq!(again.forget, 0);
    assert!(has_flags(&again, sys::TCP_ECE));
    assert!(conn.flow.is_managed());
}

#[test]
fn a_syn_that_crossed_the_synack_changes_nothing() {
    // The guest's retransmission crossed the SYN-ACK.
    for mode in [Mode::Enforce, Mode::Drain] {
        let mut conn = Conn::established(Params::default(), 5);
        conn.params.0.mode = mode.number();
        let before = conn.flow;
        let syn = conn.wait_us(1_000_000).guest_syn(linux_syn());
        assert!(lacks_flags(&syn, ECN_BITS) && syn.forget == 0);
        assert_eq!(conn.flow.wscale_shown, before.wscale_shown);
        assert_eq!(conn.flow.mss_bytes, before.mss_bytes);
        assert_eq!(u32::from(conn.flow.stage), sys::STAGE_ESTABLISHED);
        assert!(conn.flow.is_managed());
    }
}
