//! Blind SYNs and RSTs, and reused ports.

use super::*;

#[test]
fn an_answer_to_another_syn_changes_nothing() {
    let mut conn = Conn::new(Params::default(), 5);
    conn.guest_syn(linux_syn());
    let before = conn.flow;
    let stray = linux_syn().seq(1).ack(conn.seq(0).wrapping_add(4000)).ece();
    let action = conn.guest_gets(stray);
    assert_untouched(&action, &stray.0);
    assert_eq!(conn.flow.stage, before.stage);
    assert_eq!(conn.flow.flags, before.flags);
}

#[test]
fn port_reuse_over_a_live_connection() {
    // The guest lost its state and opens again: the SYN takes effect when the peer answers it.
    let mut conn = Conn::established(Params::default(), 5);
    conn.send_segs(0, 3);
    conn.guest_iss = 0x8000_0000;
    conn.guest_syn(linux_syn());
    conn.peer_synack(linux_syn().ece());
    assert_eq!(conn.flow.snd_nxt, conn.seq(0));
    assert_eq!(conn.flow.retransmissions, 0);
    assert!(conn.flow.is_managed());
}

#[test]
fn port_reuse_after_the_end() {
    let mut conn = Conn::established(Params::default(), 5);
    conn.guest_gets(conn.ack(0).rst());
    assert_eq!(u32::from(conn.flow.stage), sys::STAGE_CLOSED);
    conn.guest_iss = 5;
    assert!(has_flags(&conn.guest_syn(linux_syn()), sys::TCP_ECE | sys::TCP_CWR));
    conn.peer_synack(linux_syn().ece());
    assert!(conn.flow.is_managed());

    // In the other role.
    let mut conn = Conn::established(Params::default(), 5);
    conn.guest_gets(conn.ack(0).rst());
    conn.peer_syn(linux_syn().asking_ecn());
    conn.guest_synack(linux_syn());
    conn.peer_ack(0);
    assert!(conn.flow.is_managed());
    assert!(!conn.flow.has(sys::FLOW_GUEST_OPENED));
}

#[test]
fn blind_syn_into_a_live_connection_changes_nothing() {
    // RFC 5961, 4: the guest answers with a challenge ACK.
    let mut conn = Conn::established(Params::default(), 5);
    conn.send_segs(0, 3);
    let before = conn.flow;
    let forged = linux_syn().seq(123_456).wscale(1).mss(200);
    let action = conn.guest_gets(forged);
    assert_untouched(&action, &forged.0);
    assert_eq!(conn.flow.snd_nxt, before.snd_nxt);
    assert_eq!(conn.flow.wscale_shown, before.wscale_shown);
    assert_eq!(conn.flow.mss_bytes, before.mss_bytes);
    assert!(conn.flow.is_managed());
}

#[test]
fn blind_rst_then_syn_into_a_live_connection() {
    let mut conn = Conn::established(Params::default(), 5);
    conn.send_segs(0, 3);
    let before = conn.flow;
    // The guest accepts neither (RFC 5961, 3.2 and 4.2).
    conn.guest_gets(seg().rst().seq(77));
    conn.guest_gets(linux_syn().seq(123_456));
    conn.send_segs(3, 4);
    conn.peer_ack_segs(4);
    assert!(conn.flow.is_managed(), "the guest uses a rewritten scale");
    assert_eq!(conn.flow.wscale_shown, before.wscale_shown);
    assert_eq!(conn.flow.wscale_peer, before.wscale_peer);
    assert_eq!(conn.flow.flight_bytes(), 0);
}

#[test]
fn blind_syn_into_a_handshake() {
    let mut conn = Conn::new(Params::default(), 5);
    conn.peer_syn(linux_syn());
    conn.guest_synack(linux_syn());
    conn.guest_gets(linux_syn().seq(123_456).wscale(1));
    conn.peer_ack(0);
    assert_eq!(u32::from(conn.flow.stage), sys::STAGE_ESTABLISHED);
    assert_eq!(conn.flow.wscale_peer, PEER_WSCALE);
}

#[test]
fn blind_rst_into_a_handshake() {
    let mut conn = Conn::new(Params::default(), 5);
    conn.peer_syn(linux_syn());
    conn.guest_synack(linux_syn());
    conn.guest_gets(seg().rst().seq(77));
    conn.peer_ack(0);
    let undisturbed = Conn::accepted(Params::default(), 5, linux_syn(), linux_syn());
    assert_eq!(conn.flow.mss_bytes, undisturbed.flow.mss_bytes);
    assert_eq!(conn.flow.flags, undisturbed.flow.flags);
}

#[test]
fn a_flow_not_seen_from_its_syn_passes_untouched() {
    // Law 8: its scale is unknown.
    let mut conn = Conn::new(Params::default(), 5);
    let data = conn.data(0, 1000);
    let ack = conn.ack(1000).ece().ce();
    assert_untouched(&conn.guest_sends(data), &data.0);
    assert_untouched(&conn.guest_gets(ack), &ack.0);
    assert!(!conn.flow.is_managed());
}

#[test]
fn a_synack_to_an_unseen_syn_starts_no_flow() {
    let mut conn = Conn::new(Params::default(), 5);
    let answer = linux_syn().seq(9).ack(10);
    assert_untouched(&conn.guest_sends(answer), &answer.0);
    assert!(!conn.flow.is_managed());
}
