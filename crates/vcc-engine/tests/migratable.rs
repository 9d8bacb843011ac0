//! A guest that may continue without vcc: nothing is promised that would need vcc then.

use crate::common::*;
use vcc_engine::{GuestEcn, Params, sys};

fn migratable(name: &str) -> Params {
    let mut params = underlay(name);
    params.0.migratable = 1;
    params
}

fn ecn_bits(flags: u16) -> u32 {
    u32::from(flags) & (sys::TCP_AE | sys::TCP_ECE | sys::TCP_CWR)
}

#[test]
fn a_guest_that_opens_depends_on_nothing() {
    for name in ["reno-ecn", "dctcp", "cubic", "swift"] {
        let mut conn = Conn::new(migratable(name), 5);
        let syn = conn.guest_syn(linux_syn().room(ROOM_BYTES));
        assert_eq!((ecn_bits(syn.flags), u32::from(syn.emit)), (0, sys::EMIT_NOTHING), "{name}");
        let answer = conn.peer_synack(linux_syn());
        assert_eq!(answer.wscale, PEER_WSCALE, "{name}");
        conn.guest_acks(0);
        assert!(!conn.flow.is_bound() && !conn.flow.depends_on_translation(), "{name}");
        let data = conn.send(0, conn.mss());
        assert_eq!(u32::from(data.ip_ecn), sys::IP_ECN_NOT_ECT, "{name}");
        // The window is controlled all the same, in the peer's units.
        let ack = conn.peer_ack_segs(1);
        assert!(ack.window > 0 && ack.window < PEER_WINDOW, "{name}: {}", ack.window);
        assert_eq!(conn.flow.wscale_shown, PEER_WSCALE);
    }
}

#[test]
fn a_guest_that_accepts_depends_on_nothing() {
    let mut conn = Conn::new(migratable("dctcp"), 5);
    let syn = conn.peer_syn(linux_syn().asking_accecn().offer());
    assert_eq!(syn.wscale, PEER_WSCALE);
    // The guest is asked for none: it would escape the underlay.
    assert_eq!(ecn_bits(syn.flags), 0);
    let answer = conn.guest_synack(linux_syn().room(ROOM_BYTES));
    assert_eq!((ecn_bits(answer.flags), u32::from(answer.emit)), (0, sys::EMIT_NOTHING));
    conn.peer_ack(0);
    assert!(!conn.flow.is_bound() && !conn.flow.depends_on_translation());
    assert!(!conn.flow.has(sys::FLOW_FEEDBACK) && !conn.flow.has(sys::FLOW_ECN_FABRIC));
}

#[test]
fn the_ecn_of_a_guest_is_its_own_even_if_it_would_be_overridden() {
    let mut params = migratable("dctcp");
    params.0.guest_ecn = GuestEcn::Override.number();
    let mut conn = Conn::new(params, 5);
    let syn = conn.guest_syn(linux_syn().asking_ecn());
    assert_eq!(ecn_bits(syn.flags), sys::TCP_ECE | sys::TCP_CWR);
    let answer = conn.peer_synack(linux_syn().ece());
    assert_eq!(ecn_bits(answer.flags), sys::TCP_ECE);
    conn.guest_acks(0);
    assert!(conn.flow.has(sys::FLOW_LEFT_ALONE));
    let ack = conn.peer_ack(0);
    assert_eq!(ack.window, PEER_WINDOW);
}

#[test]
fn a_loss_is_answered() {
    let mut conn = Conn::established(migratable("dctcp"), 5);
    conn.flow.0.cc.cwnd_segs = 20;
    conn.send_segs(0, 20);
    for _ in 0..4 {
        conn.guest_gets(conn.ack(0).sack());
    }
    conn.send_segs(0, 1);
    assert!(conn.flow.reductions == 1 && conn.flow.cc.ssthresh_segs <= 10);
}

/// A policy that changes in the middle of a handshake does not take back what a SYN has promised.
#[test]
fn what_has_been_asked_in_the_guests_name_is_answered_in_its_name() {
    let mut conn = Conn::new(underlay("dctcp"), 5);
    let syn = conn.guest_syn(linux_syn());
    assert_ne!(ecn_bits(syn.flags), 0);
    conn.params.0.migratable = 1;
    let params = conn.params;
    conn.flow.judge_anew(&params);
    for answer in [linux_syn().ece(), linux_syn().ace(2)] {
        let mut conn = conn.clone();
        assert_eq!(ecn_bits(conn.peer_synack(answer).flags), 0, "the guest sees no ECN");
    }
}
