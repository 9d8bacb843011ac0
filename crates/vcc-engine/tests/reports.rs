//! The receiver half with vcc at both ends: received payload is counted in bytes and reported in a
//! PACK or FACK, and no mark reaches the guest.

use crate::common::sim::Rng;
use crate::common::*;
use vcc_engine::{Action, GuestEcn, Params, sys};

const COUNTER_MASK: u32 = 0xff_ffff;

/// A pure ACK of the guest for the peer's bytes up to `offset`, with room for a PACK.
fn guest_ack(conn: &Conn, offset: u32) -> Seg {
    seg().seq(conn.flow.snd_nxt).ack(conn.peer_seq(offset)).win(500).room(ROOM_BYTES)
}

/// The peer's payload at `offset`, to be marked and delivered.
fn payload(conn: &Conn, offset: u32, payload_bytes: u32) -> Seg {
    conn.ack(0).seq(conn.peer_seq(offset)).len(payload_bytes)
}

fn counters(action: &Action) -> (u32, u32) {
    (action.feedback.ect0_bytes, action.feedback.ce_bytes)
}

/// Both roles.
fn ends() -> [Conn; 2] {
    [Conn::to_vcc(Params::default(), 5), Conn::from_vcc(Params::default(), 0xffff_ff00)]
}

#[test]
fn bytes_are_counted_by_their_mark() {
    for mut conn in ends() {
        conn.guest_gets(payload(&conn, 0, 1000).ect0());
        conn.guest_gets(payload(&conn, 1000, 300).ce());
        conn.guest_gets(payload(&conn, 1300, 1).ce());
        conn.guest_gets(payload(&conn, 1301, 50).ect1());
        let ack = conn.guest_sends(guest_ack(&conn, 1351));
        assert!(emits(&ack, sys::EMIT_PACK));
        assert_eq!(counters(&ack), (1 + 1050, 301), "RFC 9768, 3.2.1: ECT(0) starts at 1");
        assert_eq!(u32::from(ack.verdict), sys::VCC_PASS);
    }
}

#[test]
fn a_super_segment_counts_all_its_bytes() {
    let mut conn = Conn::to_vcc(Params::default(), 5);
    conn.guest_gets(payload(&conn, 0, 64_000).cut(1440).ce());
    let ack = conn.guest_sends(guest_ack(&conn, 64_000));
    assert_eq!(counters(&ack), (1, 64_000));
}

#[test]
fn payload_that_is_not_ect_is_not_counted() {
    // A retransmission by RFC 3168, or a segment bleached on the path.
    let mut conn = Conn::to_vcc(Params::default(), 5);
    conn.guest_gets(payload(&conn, 0, 1000));
    assert!(emits(&conn.guest_sends(guest_ack(&conn, 1000)), sys::EMIT_NOTHING));
    // Nor are marks on segments without payload: DCTCP's ACKs are ECT.
    conn.guest_gets(conn.ack(0).ce());
    conn.guest_gets(payload(&conn, 1000, 0).fin().ce());
    let ack = conn.guest_sends(guest_ack(&conn, 1001));
    assert!(emits(&ack, sys::EMIT_NOTHING) && lacks_flags(&ack, sys::TCP_ECE));
}

#[test]
fn counters_wrap_at_24_bits() {
    let mut rng = Rng::new(1);
    let mut conn = Conn::to_vcc(Params::default(), 5);
    let (mut offset, mut ect0_bytes, mut ce_bytes) = (0u32, 1u32, 0u32);
    let mut wraps = 0;
    for _ in 0..2000 {
        let bytes = rng.range(1, 60_000) as u32;
        let from_peer = payload(&conn, offset, bytes);
        let before = ect0_bytes & COUNTER_MASK;
        if rng.chance(500) {
            conn.guest_gets(from_peer.ce());
            ce_bytes += bytes;
        } else {
            conn.guest_gets(from_peer.ect0());
            ect0_bytes += bytes;
        }
        offset += bytes;
        let ack = conn.guest_sends(guest_ack(&conn, offset));
        assert_eq!(counters(&ack), (ect0_bytes & COUNTER_MASK, ce_bytes & COUNTER_MASK));
        wraps += u32::from(ect0_bytes & COUNTER_MASK < before);
    }
    assert!(wraps >= 1);
}

#[test]
fn a_pure_ack_reports_only_news() {
    let mut conn = Conn::to_vcc(Params::default(), 5);
    assert!(emits(&conn.guest_sends(guest_ack(&conn, 0)), sys::EMIT_NOTHING), "nothing came");
    conn.guest_gets(payload(&conn, 0, 1).ect0());
    assert!(emits(&conn.guest_sends(guest_ack(&conn, 1)), sys::EMIT_PACK), "one byte is enough");
    for _ in 0..3 {
        assert!(emits(&conn.guest_sends(guest_ack(&conn, 1)), sys::EMIT_NOTHING), "once");
    }
    // Duplicated payload is news to the sender, which counts what it sent.
    conn.guest_gets(payload(&conn, 0, 1).ect0());
    assert!(emits(&conn.guest_sends(guest_ack(&conn, 1)), sys::EMIT_PACK));
}

#[test]
fn without_option_space_a_fack_is_sent() {
    let mut conn = Conn::to_vcc(Params::default(), 5);
    conn.guest_gets(payload(&conn, 0, 1000).ect0());
    let ack = conn.guest_sends(guest_ack(&conn, 1000).room(7));
    assert!(emits(&ack, sys::EMIT_FACK));
    assert_eq!(counters(&ack), (1001, 0));
    conn.guest_gets(payload(&conn, 1000, 1000).ect0());
    assert!(emits(&conn.guest_sends(guest_ack(&conn, 2000).room(8)), sys::EMIT_PACK));
}

#[test]
fn a_report_beside_data_waits_for_two_segments() {
    for mut conn in ends() {
        let mss_bytes = conn.mss();
        conn.guest_gets(payload(&conn, 0, mss_bytes).ect0());
        assert!(emits(&conn.send(0, 100), sys::EMIT_NOTHING), "one segment");
        conn.guest_gets(payload(&conn, mss_bytes, mss_bytes - 1).ect0());
        assert!(emits(&conn.send(100, 100), sys::EMIT_NOTHING), "a byte is missing");
        conn.guest_gets(payload(&conn, 2 * mss_bytes - 1, 1).ect0());
        let data = conn.send(200, 100);
        assert!(emits(&data, sys::EMIT_FACK), "beside data, however much room there is");
        assert_eq!(counters(&data), (1 + 2 * mss_bytes, 0));
        assert!(emits(&conn.send(300, 100), sys::EMIT_NOTHING), "once");
    }
}

#[test]
fn a_mark_beside_data_is_reported_at_once() {
    let mut conn = Conn::to_vcc(Params::default(), 5);
    conn.guest_gets(payload(&conn, 0, 1).ce());
    let data = conn.send(0, 100);
    assert!(emits(&data, sys::EMIT_FACK));
    assert_eq!(counters(&data), (1, 1));
    conn.guest_gets(payload(&conn, 1, 1).ect0());
    assert!(emits(&conn.send(100, 100), sys::EMIT_NOTHING), "the mark was reported");
    // The pending bytes are reported on the next pure ACK.
    assert_eq!(counters(&conn.guest_sends(guest_ack(&conn, 2))), (2, 1));
}

#[test]
fn a_fin_is_no_pure_ack_and_a_rst_reports_nothing() {
    let mut conn = Conn::to_vcc(Params::default(), 5);
    conn.guest_gets(payload(&conn, 0, 100).ce());
    let rst = conn.guest_sends(guest_ack(&conn, 100).rst());
    assert!(emits(&rst, sys::EMIT_NOTHING));
    let mut conn = Conn::to_vcc(Params::default(), 5);
    conn.guest_gets(payload(&conn, 0, 100).ce());
    assert!(emits(&conn.guest_sends(guest_ack(&conn, 100).fin()), sys::EMIT_FACK));
}

#[test]
fn marks_are_echoed_by_ece_as_well() {
    // A far end that ignores reports, whatever was negotiated, receives ECE (RFC 3168).
    for mut conn in ends() {
        conn.guest_gets(payload(&conn, 0, 1000).ce());
        for _ in 0..3 {
            assert!(has_flags(&conn.guest_sends(guest_ack(&conn, 1000)), sys::TCP_ECE));
        }
        conn.guest_gets(payload(&conn, 1000, 1000).ect0().cwr());
        assert!(lacks_flags(&conn.guest_sends(guest_ack(&conn, 2000)), sys::TCP_ECE));
    }
}

#[test]
fn no_mark_reaches_the_guest() {
    for mut conn in ends() {
        let data = conn.guest_gets(payload(&conn, 0, 1000).ce().ece().cwr());
        assert!(is_not_ect(&data));
        assert!(lacks_flags(&data, sys::TCP_ECN_BITS));
    }
}

#[test]
fn a_guest_whose_ecn_is_overridden_sees_ect_but_no_mark() {
    // Otherwise the guest would echo it too, and the peer would count it twice.
    let overrides = params(|p| p.guest_ecn = GuestEcn::Override.number());
    let syn = linux_syn().room(ROOM_BYTES);
    let opened = Conn::opened(overrides, 5, syn.asking_ecn(), linux_syn().accept());
    let from_peer = linux_syn().asking_ecn().offer();
    let accepted = Conn::accepted(overrides, 5, from_peer, syn.ece());
    for mut conn in [opened, accepted] {
        assert!(conn.flow.has(sys::FLOW_FEEDBACK) && conn.flow.has(sys::FLOW_ECN_GUEST));
        let marked = conn.guest_gets(payload(&conn, 0, 1000).ce().cwr());
        assert!(is_ect0(&marked));
        assert!(lacks_flags(&marked, sys::TCP_ECN_BITS));
        assert!(is_ect0(&conn.guest_gets(payload(&conn, 1000, 1000).ect0())));
        assert!(is_not_ect(&conn.guest_gets(payload(&conn, 2000, 1000))));
        let ack = conn.guest_sends(guest_ack(&conn, 3000));
        assert_eq!(counters(&ack), (1001, 1000));
        assert!(has_flags(&ack, sys::TCP_ECE), "echoed on its behalf");
        // The guest's own ECE is removed: it has seen no mark.
        conn.guest_gets(payload(&conn, 3000, 1000).ect0().cwr());
        let data = conn.guest_sends(conn.data(0, 100).ece().cwr().ce());
        assert!(lacks_flags(&data, sys::TCP_ECN_BITS));
        assert!(is_ect0(&data));
    }
}

#[test]
fn options_of_ours_never_reach_the_guest() {
    for mut conn in ends() {
        conn.send(0, 1000);
        let ours = [
            (conn.ack(0).pack(1, 0), 0),
            (conn.ack(500).pack(1, 0), 0),
            (conn.ack(100).pack(1, 0), 0), // an old ACK
            (conn.ack(1 << 20).pack(1, 0), 0),
            (payload(&conn, 0, 10).pack(1, 0), 0),
            (payload(&conn, 10, 10).fack(1, 0), 0),
            (conn.ack(500).ours_bad(), 1),
        ];
        for (number, (segment, forged)) in ours.into_iter().enumerate() {
            let action = conn.guest_gets(segment);
            assert_eq!((action.strip, action.forged), (1, forged), "number {number}");
            assert_eq!(u32::from(action.verdict), sys::VCC_PASS, "number {number}");
        }
    }
}

#[test]
fn without_negotiation_nothing_is_reported() {
    let mut conn = Conn::established(Params::default(), 5);
    conn.guest_gets(payload(&conn, 0, 5000).ce());
    let ack = conn.guest_sends(guest_ack(&conn, 5000));
    assert!(emits(&ack, sys::EMIT_NOTHING) && has_flags(&ack, sys::TCP_ECE));
    assert!(emits(&conn.send(0, 100), sys::EMIT_NOTHING));
}
