//! Law 17: a segment that its receiver discards changes nothing (RFC 9293, 3.10.7.4; RFC 5961).

use crate::common::*;
use vcc_engine::{FlowState, Params, sys};

/// The guest's window field in [`Conn::guest_acks`] and [`Conn::data`], at its own scale.
const GUEST_WINDOW_BYTES: u32 = 500 << 10;

fn stage(conn: &Conn) -> u32 {
    conn.flow.stage.into()
}

/// Passes the segment to the guest, and checks that the flow is unchanged.
#[track_caller]
fn assert_learns_nothing(conn: &mut Conn, segment: Seg, what: &str) {
    let before = conn.flow;
    let action = conn.wait_us(10).guest_gets(segment);
    let seen = |flow: &FlowState| {
        let mut state = flow.0;
        state.last_seen_ms = 0;
        state
    };
    assert!(seen(&before) == seen(&conn.flow), "{what} changed the flow");
    assert!(!is_dropped(&action), "{what} was dropped, but the guest must answer it");
    let edge = segment.0.ack.wrapping_add(conn.shown_bytes(&action));
    let beyond_bytes = edge.wrapping_sub(before.right_edge) as i32;
    assert!(beyond_bytes <= 0, "{what} shows the guest {beyond_bytes} bytes more");
}

/// Established, with data in flight, and data of the peer that the guest has acknowledged.
fn busy(isn: u32) -> Conn {
    let mut conn = Conn::established(Params::default(), isn);
    conn.send_segs(0, 4);
    conn.peer_ack_segs(1);
    conn.guest_gets(conn.ack(conn.mss()).len(1000));
    conn.guest_acks(1000);
    conn
}

#[test]
fn a_keepalive_or_window_probe_of_the_peer_is_no_duplicate_ack() {
    for isn in ISNS {
        let mut conn = busy(isn);
        let acked = conn.mss();
        for window in [PEER_WINDOW, PEER_WINDOW + 1, PEER_WINDOW + 2, PEER_WINDOW] {
            let probe = conn.ack(acked).seq(conn.peer_seq(999)).win(window);
            assert_learns_nothing(&mut conn, probe, "a probe");
        }
        assert_eq!((conn.flow.dupacks, conn.flow.reductions, conn.flow.drops), (0, 0, 0));
        conn.guest_gets(conn.ack(4 * acked).seq(conn.peer_seq(1000)));
        assert_eq!(conn.flow.flight_bytes(), 0, "an acceptable ACK still counts");
    }
}

#[test]
fn a_segment_outside_of_the_guests_window_changes_nothing() {
    for isn in ISNS {
        let mut conn = busy(isn);
        let mss = conn.mss();
        for wrong in [999, 0, 1000 + GUEST_WINDOW_BYTES + 1, 1 << 30, 1 << 31, 3 << 30] {
            let forged = conn.ack(4 * mss).seq(conn.peer_seq(wrong));
            assert_learns_nothing(&mut conn, forged, "an ACK");
            assert_learns_nothing(&mut conn, forged.ece(), "ECE");
            let sack = conn.ack(mss).seq(conn.peer_seq(wrong)).sack();
            assert_learns_nothing(&mut conn, sack, "SACK");
        }
        for wrong in [500, 1000 + GUEST_WINDOW_BYTES + 1, 1 << 30] {
            let forged = conn.ack(mss).seq(conn.peer_seq(wrong));
            assert_learns_nothing(&mut conn, forged.len(100).ce(), "marked data");
            assert_learns_nothing(&mut conn, forged.len(100).cwr(), "CWR");
            assert_learns_nothing(&mut conn, forged.fin(), "a FIN");
        }
        assert_eq!(conn.flow.snd_una, conn.seq(mss));
        // At the edge, the guest accepts it (Linux: tcp_sequence).
        conn.guest_gets(conn.ack(4 * mss).seq(conn.peer_seq(1000 + GUEST_WINDOW_BYTES)));
        assert_eq!(conn.flow.flight_bytes(), 0);
    }
}

#[test]
fn a_segment_with_an_ack_beyond_snd_nxt_changes_nothing() {
    // The guest drops such a segment with its data (RFC 9293, 3.10.7.4; RFC 5961, 5.2).
    let mut conn = busy(5);
    let sent = 4 * conn.mss();
    for wrong in [sent + 1, sent + 70_000, 1 << 30] {
        let forged = conn.ack(wrong).seq(conn.peer_seq(1000));
        for segment in [forged, forged.fin(), forged.len(100).ce()] {
            let before = conn.flow.0;
            conn.guest_gets(segment);
            assert!(before == conn.flow.0, "an ACK of {wrong} bytes");
        }
    }
}

#[test]
fn a_segment_with_an_ack_older_than_any_window_changes_nothing() {
    let mut conn = Conn::established(Params::default(), 5);
    for segs in 0..2000 {
        conn.send_segs(segs, segs + 1);
        conn.peer_ack_segs(segs + 1);
    }
    // The guest was never shown more than the peer offers.
    let offered = u32::from(PEER_WINDOW) << PEER_WSCALE;
    let acked = 2000 * conn.mss();
    let old = |conn: &Conn, by: u32| conn.ack(acked - by).len(100).ce().fin();
    let before = conn.flow.0;
    conn.guest_gets(old(&conn, offered + 1000));
    assert!(before == conn.flow.0, "an ACK of before");
    conn.guest_gets(old(&conn, 1000));
    assert!(conn.flow.has(sys::FLOW_ECE_LATCHED) && conn.flow.has(sys::FLOW_FIN_PEER));
}

#[test]
fn a_forged_fin_closes_nothing() {
    let mut conn = busy(5);
    conn.guest_sends(conn.data(4 * conn.mss(), 0).ack(conn.peer_seq(1000)).fin());
    for wrong in [0, 998, 1000 + GUEST_WINDOW_BYTES + 1, 1 << 30, 1 << 31] {
        conn.guest_gets(conn.ack(conn.mss()).seq(conn.peer_seq(wrong)).fin());
        assert_eq!(stage(&conn), sys::STAGE_ESTABLISHED, "a FIN at {wrong}");
    }
    conn.guest_gets(conn.ack(conn.mss()).seq(conn.peer_seq(1000)).fin());
    assert_eq!(stage(&conn), sys::STAGE_CLOSED);

    // A FIN of the guest that the peer discards closes nothing either.
    let mut conn = busy(5);
    conn.guest_gets(conn.ack(conn.mss()).seq(conn.peer_seq(1000)).fin());
    for wrong in [1 << 30, 1 << 31, u32::MAX] {
        conn.guest_sends(conn.data(wrong, 0).fin());
        assert_eq!(stage(&conn), sys::STAGE_ESTABLISHED, "a FIN at {wrong}");
    }
    conn.guest_sends(conn.data(4 * conn.mss(), 0).fin());
    assert_eq!(stage(&conn), sys::STAGE_CLOSED);
}

#[test]
fn a_closed_window_takes_acks_but_no_data() {
    let mut conn = busy(5);
    let mss = conn.mss();
    conn.guest_sends(seg().seq(conn.flow.snd_nxt).ack(conn.peer_seq(GUEST_WINDOW_BYTES)).win(0));
    // The window is used up: an ACK at its edge is acceptable (RFC 9293, 3.10.7.4).
    let edge = conn.peer_seq(1000 + GUEST_WINDOW_BYTES);
    conn.guest_gets(conn.ack(3 * mss).seq(edge));
    assert_eq!(conn.flow.snd_una, conn.seq(3 * mss));
    let beyond = conn.ack(4 * mss).seq(edge.wrapping_add(1)).len(10);
    assert_learns_nothing(&mut conn, beyond, "data beyond");
}

#[test]
fn the_guests_window_counts_at_its_own_scale() {
    // SYNs are unscaled, and so is a side that does not scale (RFC 7323, 2.2).
    for (guest, peer, reach_bytes) in [
        (linux_syn().wscale(0), linux_syn(), 500),
        (linux_syn().wscale(3), linux_syn(), 500 << 3),
        (linux_syn().wscale(15), linux_syn(), 500 << 14),
        (linux_syn().wscale(7), linux_syn().without(sys::OPT_WSCALE), 500),
        (linux_syn().without(sys::OPT_WSCALE), linux_syn(), 500),
    ] {
        let opened = Conn::opened(Params::default(), 5, guest.win(100), peer);
        let accepted = Conn::accepted(Params::default(), 5, peer, guest.win(100));
        for mut conn in [opened, accepted] {
            // Beyond the largest window that a SYN can offer.
            for offset in [0, 65_535, 131_070] {
                conn.guest_acks(offset);
            }
            conn.send(0, 100);
            let edge = conn.peer_seq(131_070 + reach_bytes);
            conn.guest_gets(conn.ack(100).seq(edge.wrapping_add(1)));
            assert_eq!(conn.flow.flight_bytes(), 100, "{reach_bytes} bytes and one");
            conn.guest_gets(conn.ack(100).seq(edge));
            assert_eq!(conn.flow.flight_bytes(), 0, "{reach_bytes} bytes");
        }
    }
}

#[test]
fn the_ack_that_ends_a_handshake_must_be_of_its_connection() {
    let mut conn = Conn::new(Params::default(), 5);
    conn.peer_syn(linux_syn());
    conn.guest_synack(linux_syn());
    for wrong in [u32::MAX - 1, 70_000, 1 << 30] {
        conn.guest_gets(conn.ack(0).seq(conn.peer_seq(wrong)));
        assert_eq!(stage(&conn), sys::STAGE_SYN_RECEIVED);
    }
    conn.peer_ack(0);
    assert_eq!(stage(&conn), sys::STAGE_ESTABLISHED);
}

#[test]
fn a_rst_for_a_stray_segment_in_syn_sent_closes_nothing() {
    // In SYN-SENT, the guest answers a segment with another ACK by a RST (RFC 9293, 3.10.7.3).
    for isn in ISNS {
        let mut conn = Conn::new(Params::default(), isn);
        conn.guest_syn(linux_syn());
        conn.guest_gets(seg().seq(77).ack(conn.seq(4000)).win(100));
        conn.guest_sends(seg().seq(conn.seq(4000)).rst());
        assert_eq!(stage(&conn), sys::STAGE_SYN_SENT);
        let answer = conn.peer_synack(linux_syn().ece());
        assert!(lacks_flags(&answer, sys::TCP_ECE));
        conn.guest_acks(0);
        assert!(conn.flow.is_managed() && conn.flow.has(sys::FLOW_ECN_FABRIC));
        conn.guest_gets(conn.ack(0).len(1000).ce());
        assert!(has_flags(&conn.guest_acks(1000), sys::TCP_ECE), "CE is echoed");
    }
}

#[test]
fn a_rst_for_a_stray_segment_after_a_lost_synack_closes_nothing() {
    let mut conn = Conn::new(Params::default(), 5);
    conn.guest_syn(linux_syn());
    conn.peer_synack(linux_syn().ece());
    conn.guest_sends(seg().seq(conn.seq(4000)).rst());
    conn.guest_sends(seg().seq(conn.seq(u32::MAX)).rst());
    assert_eq!(stage(&conn), sys::STAGE_ESTABLISHED);
    // This RST answers the peer's SYN-ACK: the guest aborts the connection.
    conn.guest_sends(seg().seq(conn.seq(0)).rst());
    assert_eq!(stage(&conn), sys::STAGE_CLOSED);
}

#[test]
fn a_rst_for_a_stray_segment_in_syn_received_closes_nothing() {
    // LISTEN and SYN-RECEIVED (RFC 9293, 3.10.7.2 and 3.10.7.4).
    let mut conn = Conn::new(Params::default(), 5);
    conn.peer_syn(linux_syn().asking_ecn());
    conn.guest_sends(seg().seq(123_456).rst());
    assert_eq!(stage(&conn), sys::STAGE_SYN_RECEIVED);
    conn.guest_synack(linux_syn());
    conn.guest_sends(seg().seq(123_456).rst());
    assert_eq!(stage(&conn), sys::STAGE_SYN_RECEIVED);
    conn.peer_ack(0);
    assert!(conn.flow.is_managed());
    // A RST that refuses the SYN acknowledges it.
    let mut conn = Conn::new(Params::default(), 5);
    conn.peer_syn(linux_syn());
    conn.guest_sends(seg().seq(0).rst().ack(conn.peer_seq(9 << 20)));
    assert_eq!(stage(&conn), sys::STAGE_SYN_RECEIVED);
    conn.guest_sends(seg().seq(0).rst().ack(conn.peer_seq(0)));
    assert_eq!(stage(&conn), sys::STAGE_CLOSED);
}

#[test]
fn a_rst_that_does_not_acknowledge_the_syn_refuses_nothing() {
    // RFC 9293, 3.10.7.3.
    for isn in ISNS {
        let mut conn = Conn::new(Params::default(), isn);
        conn.guest_syn(linux_syn());
        conn.guest_gets(seg().seq(77).rst());
        for wrong in [u32::MAX, 1, 1 << 30] {
            conn.guest_gets(seg().seq(77).ack(conn.seq(wrong)).rst());
        }
        assert_eq!(stage(&conn), sys::STAGE_SYN_SENT);
        conn.guest_gets(seg().seq(0).ack(conn.seq(0)).rst());
        assert_eq!(stage(&conn), sys::STAGE_CLOSED);
    }
}

#[test]
fn a_rst_that_the_peer_discards_closes_nothing() {
    let mut conn = busy(5);
    for wrong in [1 << 30, 1 << 31, u32::MAX] {
        conn.guest_sends(conn.data(wrong, 0).rst());
        assert_eq!(stage(&conn), sys::STAGE_ESTABLISHED);
    }
    for right in [1, 4] {
        let mut conn = conn.clone();
        conn.guest_sends(conn.data(right * conn.mss(), 0).rst());
        assert_eq!(stage(&conn), sys::STAGE_CLOSED);
    }
}

#[test]
fn a_rst_at_the_guests_acknowledgement_closes() {
    // Later data was lost between port and guest, so the guest still expects this number.
    let mut conn = busy(5);
    conn.guest_gets(conn.ack(conn.mss()).seq(conn.peer_seq(1000)).len(1000));
    conn.guest_gets(seg().seq(conn.peer_seq(1000)).rst());
    assert_eq!(stage(&conn), sys::STAGE_CLOSED);
}

#[test]
fn data_behind_a_fin_is_not_received() {
    // RFC 9293, 3.10.7.4, seventh: in CLOSE-WAIT the segment's text is ignored.
    for isn in ISNS {
        let mut conn = busy(isn);
        let mss = conn.mss();
        conn.guest_gets(conn.ack(mss).seq(conn.peer_seq(1000)).fin());
        conn.guest_gets(conn.ack(mss).seq(conn.peer_seq(1001)).len(100));
        conn.guest_gets(seg().seq(conn.peer_seq(1101)).rst());
        assert_eq!(stage(&conn), sys::STAGE_ESTABLISHED, "a RST behind the FIN");
        conn.guest_gets(seg().seq(conn.peer_seq(1001)).rst());
        assert_eq!(stage(&conn), sys::STAGE_CLOSED);
    }
}

#[test]
fn what_was_missing_before_a_fin_is_received_when_the_guest_says_so() {
    let mut conn = busy(5);
    let mss = conn.mss();
    conn.guest_gets(conn.ack(mss).seq(conn.peer_seq(1100)).fin());
    conn.guest_gets(conn.ack(mss).seq(conn.peer_seq(1000)).len(100));
    conn.guest_acks(1101);
    conn.guest_gets(seg().seq(conn.peer_seq(1101)).rst());
    assert_eq!(stage(&conn), sys::STAGE_CLOSED);
}

#[test]
fn an_ack_from_before_the_connection_changes_nothing() {
    // No more was acknowledged than was ever sent (Linux: bytes_acked).
    for isn in ISNS {
        let mut conn = busy(isn);
        for before in [2, 1000, 70_000] {
            let old = conn.ack(0_u32.wrapping_sub(before)).seq(conn.peer_seq(1000));
            assert_learns_nothing(&mut conn, old, "an ACK");
            assert_learns_nothing(&mut conn, old.len(100).ce(), "marked data");
            assert_learns_nothing(&mut conn, old.fin(), "a FIN");
        }
        // An ACK that was overtaken is of this connection.
        conn.guest_gets(conn.ack(0).seq(conn.peer_seq(1000)).len(100));
        assert_eq!(conn.flow.rcv_nxt, conn.peer_seq(1100));
    }
}

#[test]
fn acks_are_believed_where_the_number_of_acknowledged_bytes_wraps() {
    for isn in ISNS {
        let mut conn = Conn::established(Params::default(), isn);
        let mss_bytes = conn.mss();
        // All but a segment and a half of 4 GiB were acknowledged.
        conn.flow.0.iss = conn.flow.snd_una.wrapping_add(mss_bytes * 3 / 2);
        for segs in 0..5 {
            conn.send(segs * mss_bytes, mss_bytes);
        }
        for segs in 1..=5 {
            conn.guest_gets(conn.ack(segs * mss_bytes));
            assert_eq!(conn.flow.snd_una, conn.ack(segs * mss_bytes).0.ack, "{segs}");
        }
    }
}

#[test]
fn a_rst_at_the_peers_fin_closes() {
    // macOS sends it so, and Linux believes it (tcp_reset_check).
    for isn in ISNS {
        let mut conn = busy(isn);
        let before = seg().seq(conn.peer_seq(999)).rst();
        conn.guest_gets(before);
        assert_eq!(stage(&conn), sys::STAGE_ESTABLISHED, "without a FIN");
        conn.guest_gets(conn.ack(conn.mss()).seq(conn.peer_seq(1000)).fin());
        conn.guest_acks(1001);
        conn.guest_gets(before);
        assert_eq!(stage(&conn), sys::STAGE_ESTABLISHED, "before the FIN");
        conn.guest_gets(seg().seq(conn.peer_seq(1000)).rst());
        assert_eq!(stage(&conn), sys::STAGE_CLOSED);
    }
}
