//! Negotiation of feedback between two vcc ends. A plain peer, and a middlebox that alters options,
//! leave plain ECN as it was.

use crate::common::*;
use vcc_engine::{Action, GuestEcn, Mode, Params, sys};

const ECN_SETUP: u32 = sys::TCP_ECE | sys::TCP_CWR;

fn roomy_syn() -> Seg {
    linux_syn().room(ROOM_BYTES)
}

fn offers(action: &Action) -> bool {
    emits(action, sys::EMIT_HELLO) && u32::from(action.hello) == sys::HELLO_OFFER
}

fn accepts(action: &Action) -> bool {
    emits(action, sys::EMIT_HELLO) && u32::from(action.hello) == sys::HELLO_ACCEPT
}

fn agreed(conn: &Conn) -> bool {
    conn.flow.has(sys::FLOW_FEEDBACK)
}

fn overrides() -> Params {
    params(|p| p.guest_ecn = GuestEcn::Override.number())
}

#[test]
fn the_first_syn_offers() {
    for name in ["reno-ecn", "dctcp", "dctcp-priority"] {
        for isn in ISNS {
            let mut conn = Conn::new(underlay(name), isn);
            let syn = conn.guest_syn(roomy_syn());
            assert!(offers(&syn) && has_flags(&syn, ECN_SETUP), "{name}");
            assert!(!agreed(&conn), "offered, not negotiated");
        }
    }
}

#[test]
fn a_retransmitted_syn_does_not_offer() {
    // A middlebox may drop segments with an unknown option.
    let mut conn = Conn::new(Params::default(), 5);
    conn.guest_syn(roomy_syn());
    for _ in 0..3 {
        let again = conn.wait_us(1_000_000).guest_syn(roomy_syn());
        assert!(emits(&again, sys::EMIT_NOTHING));
        assert!(lacks_flags(&again, ECN_SETUP));
    }
    // The first SYN may have arrived, with its answer lost or late.
    conn.peer_synack(linux_syn().ece().accept());
    assert!(agreed(&conn));
    assert!(is_not_ect(&conn.send(0, 1000)), "fallback: RFC 3168, 6.1.1.1");
}

#[test]
fn no_offer_without_its_conditions() {
    let offers_with = |params: Params, syn: Seg| {
        let mut conn = Conn::new(params, 5);
        let action = conn.guest_syn(syn);
        conn.flow.has(sys::FLOW_HELLO_OFFERED) || !emits(&action, sys::EMIT_NOTHING)
    };
    let default = Params::default();
    assert!(offers_with(default, roomy_syn().room(8)));
    assert!(!offers_with(default, roomy_syn().room(7)), "no room");
    assert!(!offers_with(params(|p| p.feedback = 0), roomy_syn()), "disabled");
    assert!(!offers_with(params(|p| p.mode = Mode::Shadow.number()), roomy_syn()), "shadow");
    assert!(!offers_with(params(|p| p.mode = Mode::Drain.number()), roomy_syn()), "drain");
    for name in ["transparent", "reno", "cubic"] {
        assert!(!offers_with(underlay(name), roomy_syn()), "{name} has no ECN");
    }
    assert!(!offers_with(default, roomy_syn().asking_ecn()), "its ECN is its own");
    assert!(!offers_with(default, roomy_syn().asking_accecn()), "AccECN");
    assert!(offers_with(overrides(), roomy_syn().asking_ecn()));
    assert!(offers_with(overrides(), roomy_syn().asking_accecn()), "reduced to classic ECN");
}

#[test]
fn only_an_acceptance_counts() {
    let agreed_after = |answer: Seg| {
        let conn = Conn::opened(Params::default(), 5, roomy_syn(), answer);
        assert!(conn.flow.has(sys::FLOW_ECN_FABRIC), "plain ECN works as before");
        agreed(&conn)
    };
    assert!(agreed_after(linux_syn().accept()));
    assert!(!agreed_after(linux_syn()), "nothing");
    assert!(!agreed_after(linux_syn().offer()), "an echo by a middlebox");
    assert!(!agreed_after(linux_syn().ours_bad()), "another version");
    assert!(!agreed_after(linux_syn().pack(1, 0)), "another option");
    let mut unknown = linux_syn().accept();
    unknown.0.hello = 7;
    assert!(!agreed_after(unknown));
    unknown.0.hello = sys::HELLO_NONE as u8;
    assert!(!agreed_after(unknown));
}

#[test]
fn an_acceptance_without_an_offer_is_ignored() {
    // The SYN had no room for an offer, so the acceptance is forged.
    let conn = Conn::opened(Params::default(), 5, linux_syn(), linux_syn().accept());
    assert!(!agreed(&conn));
    assert_eq!(conn.flow.forged, 1);
}

#[test]
fn feedback_needs_ecn() {
    let mut conn = Conn::new(Params::default(), 5);
    conn.guest_syn(roomy_syn());
    conn.peer_synack(linux_syn().accept()); // without ECE: the peer has no ECN
    assert!(!agreed(&conn));
    assert!(is_not_ect(&conn.send(0, 1000)));
    // A reflecting middlebox returns both bits.
    let mut conn = Conn::new(Params::default(), 5);
    conn.guest_syn(roomy_syn());
    conn.peer_synack(linux_syn().asking_ecn().accept());
    assert!(!agreed(&conn));
    // Losses are still answered.
    let mut conn = conn.without_sack();
    conn.send_segs(0, 10);
    conn.peer_ack_segs(1);
    for _ in 0..3 {
        conn.peer_ack_segs(1);
    }
    assert_eq!((conn.flow.reductions, conn.flow.cc.ssthresh_segs), (1, 5));
}

#[test]
fn a_listener_accepts() {
    for isn in ISNS {
        let mut conn = Conn::new(Params::default(), isn);
        let to_guest = conn.peer_syn(linux_syn().asking_ecn().offer());
        assert_eq!((to_guest.strip, to_guest.forged), (1, 0), "the guest does not see it");
        let answer = conn.guest_synack(roomy_syn());
        assert!(accepts(&answer) && has_flags(&answer, sys::TCP_ECE));
        conn.peer_ack(0);
        assert!(agreed(&conn));
    }
}

#[test]
fn a_listener_accepts_only_an_offer_with_ecn_and_room() {
    let accepts_after = |params: Params, syn: Seg, answer: Seg| {
        let mut conn = Conn::new(params, 5);
        conn.peer_syn(syn);
        let accepted = accepts(&conn.guest_synack(answer));
        assert_eq!(accepted, agreed(&conn));
        accepted
    };
    let (default, asking) = (Params::default(), linux_syn().asking_ecn());
    assert!(accepts_after(default, asking.offer(), roomy_syn()));
    assert!(!accepts_after(default, asking, roomy_syn()), "no offer");
    assert!(
        !accepts_after(default, asking.accept(), roomy_syn()),
        "an acceptance without an offer"
    );
    assert!(!accepts_after(default, asking.ours_bad(), roomy_syn()), "another version");
    assert!(!accepts_after(default, linux_syn().offer(), roomy_syn()), "no ECN");
    assert!(!accepts_after(default, asking.offer(), roomy_syn().room(7)), "no room");
    assert!(!accepts_after(params(|p| p.feedback = 0), asking.offer(), roomy_syn()), "unwanted");
    let shadow = params(|p| p.mode = Mode::Shadow.number());
    assert!(!accepts_after(shadow, asking.offer(), roomy_syn()), "shadow");
    assert!(!accepts_after(default, asking.offer(), roomy_syn().ece()), "the guest's own ECN");
    assert!(accepts_after(overrides(), asking.offer(), roomy_syn().ece()));
    let accecn = linux_syn().asking_accecn().offer();
    assert!(accepts_after(default, accecn, roomy_syn()), "a guest without ECN");
}

#[test]
fn a_retransmitted_synack_is_the_same() {
    let mut conn = Conn::new(Params::default(), 5);
    conn.peer_syn(linux_syn().asking_ecn().offer());
    let first = conn.guest_synack(roomy_syn());
    conn.peer_syn(linux_syn().asking_ecn().offer());
    assert_eq!(conn.guest_synack(roomy_syn()), first);
    // The peer's SYN fell back, without ECN and options: the answer still follows the first SYN
    // (RFC 3168).
    conn.peer_syn(linux_syn());
    assert_eq!(conn.guest_synack(roomy_syn()), first);
    conn.peer_ack(0);
    assert_eq!(conn.guest_synack(roomy_syn()), first, "once established");

    let mut plain = Conn::new(Params::default(), 5);
    plain.peer_syn(linux_syn().asking_ecn().offer());
    let first = plain.guest_synack(roomy_syn().room(0));
    plain.peer_ack(0);
    let again = plain.guest_synack(roomy_syn());
    assert!(emits(&first, sys::EMIT_NOTHING) && emits(&again, sys::EMIT_NOTHING));
    assert!(!agreed(&plain), "not accepted later either");
}

#[test]
fn offers_on_retransmissions_are_hidden() {
    let mut conn = Conn::from_vcc(Params::default(), 5);
    let late = conn.peer_syn(linux_syn().asking_ecn().offer());
    assert_eq!((late.strip, late.forged), (1, 0), "a copy of the SYN");
    let mut conn = Conn::to_vcc(Params::default(), 5);
    let first = conn.guest_gets(linux_syn().ece().accept().seq(PEER_ISS).ack(conn.seq(0)));
    assert_eq!((first.strip, first.forged), (1, 0), "a copy of the SYN-ACK");
    assert!(lacks_flags(&first, sys::TCP_ECE));
    assert!(agreed(&conn));
}

#[test]
fn options_on_a_synack_are_hidden_whatever_they_are() {
    for answer in [linux_syn().accept(), linux_syn().offer(), linux_syn().ours_bad()] {
        let mut conn = Conn::new(Params::default(), 5);
        conn.guest_syn(roomy_syn());
        assert_eq!(conn.peer_synack(answer.ece()).strip, 1);
    }
    for syn in [linux_syn().offer(), linux_syn().accept(), linux_syn().ours_bad()] {
        let mut conn = Conn::new(params(|p| p.feedback = 0), 5);
        assert_eq!(conn.peer_syn(syn.asking_ecn()).strip, 1, "also where feedback is off");
    }
}

#[test]
fn a_guest_cannot_forge_our_options() {
    // On a SYN: its offer is replaced by ours.
    for forged in [roomy_syn().offer(), roomy_syn().accept(), roomy_syn().ours_bad()] {
        let mut conn = Conn::new(Params::default(), 5);
        let syn = conn.guest_syn(forged);
        assert_eq!((syn.strip, syn.forged, conn.flow.forged), (1, 1, 1));
        assert!(offers(&syn));
        // Also if vcc offers nothing.
        let mut conn = Conn::new(params(|p| p.feedback = 0), 5);
        let syn = conn.guest_syn(forged);
        assert_eq!((syn.strip, syn.forged, syn.emit), (1, 1, 0));
    }
    // On a SYN-ACK: it cannot accept on our behalf.
    let mut conn = Conn::new(Params::default(), 5);
    conn.peer_syn(linux_syn().asking_ecn());
    let answer = conn.guest_synack(roomy_syn().accept());
    assert_eq!((answer.strip, answer.forged, answer.emit), (1, 1, 0));
    assert!(!agreed(&conn));
    // On data and ACKs.
    let mut conn = Conn::to_vcc(Params::default(), 5);
    for forged in [seg().pack(5, 5), seg().fack(5, 5), seg().offer(), seg().ours_bad()] {
        let before = conn.flow.forged;
        let ack = forged.seq(conn.seq(0)).ack(conn.peer_seq(0));
        let action = conn.guest_sends(ack);
        assert_eq!((action.strip, action.forged, action.verdict), (1, 1, sys::VCC_PASS as u8));
        let action = conn.guest_sends(ack.len(10));
        assert_eq!((action.strip, action.forged), (1, 1));
        assert_eq!(conn.flow.forged, before + 2);
    }
    // On a SYN that crosses the answer to the first.
    let crossing = conn.guest_syn(roomy_syn().offer());
    assert_eq!((crossing.strip, crossing.forged, crossing.emit), (1, 1, 0));
}

#[test]
fn the_count_of_forgeries_saturates() {
    let mut conn = Conn::established(Params::default(), 5);
    conn.flow.0.forged = u8::MAX - 1;
    for _ in 0..3 {
        let action = conn.guest_sends(conn.data(0, 0).pack(1, 1));
        assert_eq!(action.forged, 1);
    }
    assert_eq!(conn.flow.forged, u8::MAX);
}

#[test]
fn a_flow_left_alone_keeps_its_options() {
    // Kind 172 is AccECN's own option.
    let mut conn = Conn::new(Params::default(), 5);
    conn.guest_syn(linux_syn().asking_accecn());
    let answer = linux_syn().cwr().pack(1, 0).seq(PEER_ISS).ack(conn.seq(0));
    assert_untouched(&conn.guest_gets(answer), &answer.0);
    let data = conn.data(0, 100).pack(1, 0);
    assert_untouched(&conn.guest_sends(data), &data.0);
    let ack = conn.ack(100).pack(1, 0);
    let action = conn.guest_gets(ack);
    assert_eq!((action.strip, action.forged), (0, 0));
    // In shadow mode, all flows do.
    let shadow = params(|p| p.mode = Mode::Shadow.number());
    let mut conn = Conn::established(shadow, 5);
    let ack = conn.ack(0).fack(1, 0);
    assert_untouched(&conn.guest_gets(ack), &ack.0);
    let data = conn.data(0, 100).pack(1, 0);
    assert_untouched(&conn.guest_sends(data), &data.0);
    assert_eq!(conn.flow.forged, 0);
}

#[test]
fn simultaneous_open_negotiates_no_feedback() {
    // Neither SYN answers the other's offer, and ECN is off (RFC 3168 does not cover simultaneous
    // open).
    let mut conn = Conn::new(Params::default(), 5);
    conn.guest_syn(roomy_syn());
    let syn = conn.peer_syn(linux_syn().asking_ecn().offer());
    assert_eq!(syn.strip, 1);
    let answer = conn.guest_synack(roomy_syn());
    assert!(emits(&answer, sys::EMIT_NOTHING));
    conn.peer_synack(linux_syn().accept());
    conn.peer_ack(0);
    assert!(!agreed(&conn));
    assert!(is_not_ect(&conn.send(0, 1000)));
    assert_eq!(u32::from(conn.flow.stage), sys::STAGE_ESTABLISHED);
}

#[test]
fn a_syn_that_crosses_the_peers_offers_nothing() {
    // The guest's timer expired before the peer's SYN arrived: the open remains simultaneous.
    let mut conn = Conn::new(Params::default(), 5);
    conn.guest_syn(roomy_syn());
    conn.peer_syn(linux_syn().asking_ecn().offer());
    let again = conn.guest_syn(roomy_syn());
    assert!(emits(&again, sys::EMIT_NOTHING) && lacks_flags(&again, ECN_SETUP));
    conn.guest_synack(roomy_syn());
    conn.peer_ack(0);
    assert_eq!(u32::from(conn.flow.stage), sys::STAGE_ESTABLISHED);
    assert!(!agreed(&conn));
}

#[test]
fn a_reused_port_starts_anew() {
    let mut conn = Conn::to_vcc(Params::default(), 5);
    conn.send(0, 1000);
    conn.guest_gets(conn.ack(1000).pack(1001, 0));
    conn.guest_iss = 0x4000_0000;
    let syn = conn.guest_syn(roomy_syn());
    assert!(offers(&syn));
    conn.peer_synack(linux_syn().ece());
    assert!(!agreed(&conn), "the new peer is not vcc");
    assert!(!conn.flow.has(sys::FLOW_FEEDBACK_HEARD));
    assert_eq!(conn.flow.unreported_bytes, 0);

    let mut conn = Conn::from_vcc(Params::default(), 5);
    conn.guest_sends(seg().seq(conn.seq(0)).ack(conn.peer_seq(0)).rst());
    conn.guest_iss = 0x4000_0000;
    conn.peer_syn(linux_syn().asking_ecn());
    assert!(emits(&conn.guest_synack(roomy_syn()), sys::EMIT_NOTHING));
    conn.peer_ack(0);
    assert!(!agreed(&conn));
}

#[test]
fn changed_parameters_break_no_handshake() {
    // Feedback is enabled or disabled between the SYN and a retransmitted SYN-ACK.
    let mut conn = Conn::new(params(|p| p.feedback = 0), 5);
    conn.peer_syn(linux_syn().asking_ecn().offer());
    conn.params = Params::default();
    assert!(emits(&conn.guest_synack(roomy_syn()), sys::EMIT_NOTHING));
    assert!(!agreed(&conn));

    let mut conn = Conn::new(Params::default(), 5);
    conn.peer_syn(linux_syn().asking_ecn().offer());
    conn.params = params(|p| p.feedback = 0);
    conn.guest_synack(roomy_syn());
    conn.peer_ack(0);
    conn.params = Params::default();
    let again = conn.guest_synack(roomy_syn());
    assert!(emits(&again, sys::EMIT_NOTHING), "not accepted at first");
    assert!(!agreed(&conn), "counting has not begun");

    let mut conn = Conn::from_vcc(Params::default(), 5);
    conn.params = params(|p| p.feedback = 0);
    assert!(accepts(&conn.guest_synack(roomy_syn())), "accepted at first");
}
