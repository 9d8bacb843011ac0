//! SYNs and SYN-ACKs that are duplicated, late, or sent into a live connection.

use crate::common::*;
use vcc_engine::{Mode, Params, sys};

const ECN_SETUP: u32 = sys::TCP_ECE | sys::TCP_CWR;

fn stage(conn: &Conn) -> u32 {
    conn.flow.stage.into()
}

fn policing() -> Params {
    params(|p| p.police = 1)
}

/// CE to the guest is echoed, and ECE on its data is answered.
#[track_caller]
fn assert_translated(conn: &mut Conn, peer_offset: u32, guest_offset: u32) {
    assert!(conn.flow.is_managed() && conn.flow.has(sys::FLOW_ECN_FABRIC));
    let mark = conn.ack(guest_offset).seq(conn.peer_seq(peer_offset)).len(100).ce();
    assert!(is_not_ect(&conn.guest_gets(mark)));
    assert!(has_flags(&conn.guest_acks(peer_offset + 100), sys::TCP_ECE));
    let before = conn.flow.reductions;
    conn.send(guest_offset, 1000);
    conn.guest_gets(conn.ack(guest_offset + 1000).seq(conn.peer_seq(peer_offset + 100)).ece());
    assert_eq!(conn.flow.reductions, before + 1);
}

#[test]
fn a_fast_open_client_after_a_lost_synack() {
    for isn in ISNS {
        let mut conn = Conn::new(Params::default(), isn);
        conn.guest_syn(linux_syn().len(500));
        let accepts = linux_syn().seq(PEER_ISS).ack(conn.seq(500)).ece();
        conn.guest_gets(accepts);
        // The retransmitted SYN has no data, as in Linux.
        let again = conn.wait_us(1_000_000).guest_syn(linux_syn());
        assert!(lacks_flags(&again, ECN_SETUP), "RFC 3168, 6.1.1.1");
        conn.guest_gets(accepts);
        assert_eq!(stage(&conn), sys::STAGE_ESTABLISHED);
        assert_eq!(conn.flow.snd_una, conn.seq(500));
        conn.guest_acks(0);
        assert!(conn.flow.is_managed());
        conn.guest_gets(conn.ack(500).len(100).ce());
        assert!(has_flags(&conn.guest_acks(100), sys::TCP_ECE), "CE is echoed");
    }
}

#[test]
fn a_fast_open_server_after_a_lost_last_ack() {
    for isn in ISNS {
        let mut conn = Conn::new(Params::default(), isn);
        conn.peer_syn(linux_syn().asking_ecn());
        conn.guest_synack(linux_syn());
        conn.send(0, 1000);
        conn.peer_ack(1000);
        let again = conn.wait_us(1_000_000).guest_synack(linux_syn());
        assert_eq!(again.forget, 0, "the guest reads windows at a rewritten scale");
        assert!(has_flags(&again, sys::TCP_ECE), "as the first");
        assert_eq!(conn.flow.snd_una, conn.seq(1000));
        conn.guest_acks(0);
        assert_translated(&mut conn, 0, 1000);
    }
}

#[test]
fn the_last_synack_before_the_guests_first_ack_holds() {
    // The first SYN-ACK was lost behind the port, and the peer forgot it (SYN cookies, a restart).
    for isn in ISNS {
        let mut conn = Conn::new(Params::default(), isn);
        conn.guest_syn(linux_syn().room(ROOM_BYTES));
        conn.peer_synack(linux_syn().mss(8960).wscale(12).ece().accept());
        conn.wait_us(1_000_000).guest_syn(linux_syn());
        let other_iss = PEER_ISS.wrapping_add(1 << 30);
        let bare = seg().syn().win(64240).mss(536);
        let shown = conn.guest_gets(bare.seq(other_iss).ack(conn.seq(0)));
        assert_eq!((shown.mss, shown.flags & ECN_SETUP as u16), (536, 0));
        for gone in [
            sys::FLOW_WSCALE,
            sys::FLOW_SACK,
            sys::FLOW_TIMESTAMPS,
            sys::FLOW_ECN_FABRIC,
            sys::FLOW_FEEDBACK,
        ] {
            assert!(!conn.flow.has(gone), "flag {gone:#x} of the first SYN-ACK");
        }
        assert_eq!((conn.flow.wscale_peer, conn.flow.wscale_shown), (0, 0));
        assert_eq!(conn.mss(), 536);
        // In the other order: the second has more options.
        let answer = linux_syn().ece().seq(PEER_ISS).ack(conn.seq(0));
        let shown = conn.guest_gets(answer);
        assert_eq!(shown.wscale, conn.flow.wscale_shown);
        assert_eq!(conn.flow.wscale_peer, PEER_WSCALE);
        assert!(conn.flow.has(sys::FLOW_SACK) && conn.flow.has(sys::FLOW_TIMESTAMPS));
        conn.guest_acks(0);
        // From now on, the guest ignores SYN-ACKs.
        let before = conn.flow.0;
        conn.guest_gets(bare.seq(PEER_ISS).ack(conn.seq(0)));
        assert_eq!(before.wscale_peer, conn.flow.wscale_peer);
        assert_eq!(before.mss_bytes, conn.flow.mss_bytes);
        assert_eq!(before.flags, conn.flow.flags);
    }
}

#[test]
fn a_retransmitted_syn_with_fewer_options() {
    // FreeBSD drops options from the SYN after some retransmissions.
    let mut conn = Conn::new(Params::default(), 5);
    conn.guest_syn(linux_syn());
    conn.peer_synack(linux_syn().ece());
    conn.wait_us(1_000_000).guest_syn(seg().syn().win(64240).mss(1460));
    conn.peer_synack(linux_syn());
    assert!(!conn.flow.has(sys::FLOW_WSCALE) && !conn.flow.has(sys::FLOW_SACK));
    assert_eq!((conn.flow.wscale_peer, conn.flow.wscale_shown), (0, 0));
}

#[test]
fn a_listening_guest_with_a_new_answer() {
    // The guest timed out, and the peer retransmitted its SYN.
    let mut conn = Conn::new(Params::default(), 5);
    conn.peer_syn(linux_syn().asking_ecn());
    conn.guest_synack(linux_syn());
    conn.guest_iss = 0x4000_0000;
    conn.peer_syn(linux_syn().asking_ecn());
    let answer = conn.guest_synack(linux_syn().without(sys::OPT_SACK_PERMITTED));
    assert_eq!(answer.forget, 0);
    conn.peer_ack(0);
    assert_eq!(stage(&conn), sys::STAGE_ESTABLISHED);
    assert!(!conn.flow.has(sys::FLOW_SACK));
    conn.guest_acks(0);
    assert_translated(&mut conn, 0, 0);
}

#[test]
fn a_lost_fast_open_syn_is_no_timeout_of_data() {
    for isn in ISNS {
        let mut conn = Conn::new(Params::default(), isn);
        conn.guest_syn(linux_syn().len(1000));
        conn.wait_us(1_000_000).guest_syn(linux_syn());
        conn.wait_us(500).peer_synack(linux_syn());
        assert_eq!(conn.flow.flight_bytes(), 0, "not accepted (RFC 7413, 4.1.3)");
        conn.deadline();
        conn.send(0, 1000);
        conn.peer_ack(1000);
        assert_eq!((conn.flow.reductions, conn.flow.retransmissions), (0, 0));
        assert!(conn.cwnd() >= 10, "{}", conn.cwnd());
    }
}

#[test]
fn an_answered_fast_open_syn_is_no_timeout_either() {
    let mut conn = Conn::new(Params::default(), 5);
    conn.guest_syn(linux_syn().len(1000));
    conn.wait_us(1_000_000).guest_syn(linux_syn());
    let answer = linux_syn().seq(PEER_ISS).ack(conn.seq(400));
    conn.wait_us(500).guest_gets(answer);
    conn.deadline();
    conn.send(400, 600);
    conn.peer_ack(1000);
    assert_eq!((conn.flow.reductions, conn.cwnd() >= 10), (0, true));
}

#[test]
fn a_network_duplicate_of_a_syn_is_no_timeout() {
    let mut conn = Conn::new(Params::default(), 5);
    let first = conn.guest_syn(linux_syn());
    let copy = conn.wait_us(100).guest_syn(linux_syn());
    assert!(has_flags(&first, ECN_SETUP) && has_flags(&copy, ECN_SETUP));
    assert!(!conn.flow.has(sys::FLOW_ECN_FELL_BACK));
    conn.peer_synack(linux_syn().ece());
    assert!(is_ect0(&conn.send(0, 1000)));
    assert_eq!(conn.flow.ecn_fabric(), "yes");
    // A retransmission by the timer is one (RFC 3168, 6.1.1.1).
    let mut conn = Conn::new(Params::default(), 5);
    conn.guest_syn(linux_syn());
    assert!(lacks_flags(&conn.wait_us(1_000_000).guest_syn(linux_syn()), ECN_SETUP));
    conn.peer_synack(linux_syn().ece());
    assert!(is_not_ect(&conn.send(0, 1000)));
    assert_eq!(conn.flow.ecn_fabric(), "no", "no ECT");
}

#[test]
fn a_syn_of_the_guest_into_a_live_connection_needs_an_answer() {
    for params in [Params::default(), policing()] {
        let mut conn = Conn::established(params, 5);
        conn.send_segs(0, 3);
        let live = conn.clone();
        // The peer still has the connection, and answers with an ACK (RFC 5961, 4).
        conn.guest_sends(linux_syn().seq(0x8000_0000));
        conn.peer_ack_segs(3);
        assert_eq!(stage(&conn), sys::STAGE_ESTABLISHED);
        assert_eq!(conn.flow.snd_una, live.flow.snd_nxt);
        assert_translated(&mut conn, 0, 3 * live.mss());
        // An answer to another SYN does not count.
        conn.guest_gets(linux_syn().seq(9).ack(0x9000_0000));
        assert_eq!(conn.flow.snd_una, conn.flow.snd_nxt);
    }
}

#[test]
fn both_ends_restart() {
    // Guest and peer have lost the connection, unseen by the port.
    for isn in ISNS {
        let mut conn = Conn::established(Params::default(), isn);
        conn.send_segs(0, 3);
        conn.guest_iss = isn.wrapping_add(0x8000_0000);
        let syn = conn.guest_syn(linux_syn().mss(1400));
        assert!(has_flags(&syn, ECN_SETUP));
        let answer = linux_syn().wscale(4).ece().seq(77).ack(conn.seq(0));
        let shown = conn.guest_gets(answer);
        assert!(lacks_flags(&shown, sys::TCP_ECE));
        assert_eq!(conn.flow.wscale_peer, 4);
        assert_eq!((conn.flow.snd_una, conn.flow.snd_nxt), (conn.seq(0), conn.seq(0)));
        assert_eq!((conn.flow.retransmissions, conn.cwnd()), (0, 10));
        assert!(conn.flow.is_managed());

        // The peer opens.
        let mut conn = Conn::established(Params::default(), isn);
        conn.send_segs(0, 3);
        let syn = linux_syn().seq(0x3000_0000).wscale(4);
        assert_untouched(&conn.guest_gets(syn), &syn.0);
        conn.guest_iss = isn.wrapping_add(0x8000_0000);
        let answer = linux_syn().seq(conn.guest_iss).ack(0x3000_0001);
        assert_eq!(conn.guest_sends(answer).forget, 0);
        assert_eq!(stage(&conn), sys::STAGE_SYN_RECEIVED);
        conn.guest_gets(seg().seq(0x3000_0001).ack(conn.seq(0)).win(1000));
        assert_eq!(stage(&conn), sys::STAGE_ESTABLISHED);
        assert_eq!((conn.flow.wscale_peer, conn.flow.wscale_shown), (4, 4));
        assert!(conn.flow.is_managed());
    }
}

#[test]
fn draining_takes_no_restarted_connection() {
    let mut conn = Conn::established(Params::default(), 5);
    conn.params.0.mode = Mode::Drain.number();
    conn.guest_iss = 0x8000_0000;
    let syn = linux_syn().seq(conn.guest_iss);
    assert_untouched(&conn.guest_syn(linux_syn()), &syn.0);
    let answer = linux_syn().wscale(4).seq(77).ack(conn.seq(0));
    let action = conn.guest_gets(answer);
    assert_eq!(action.forget, 1);
    assert_untouched(&action, &answer.0);
}

#[test]
fn a_synack_of_the_guest_into_a_live_connection_changes_nothing() {
    for params in [Params::default(), policing()] {
        for accepted in [false, true] {
            let mut conn = match accepted {
                false => Conn::established(params, 5),
                true => Conn::accepted(params, 5, linux_syn().asking_ecn(), linux_syn()),
            };
            conn.guest_acks(0);
            conn.send_segs(0, 3);
            for stray in [
                linux_syn().seq(123_456).ack(conn.peer_seq(0)),
                linux_syn().seq(conn.seq(0)).ack(conn.peer_seq(9 << 20)),
                linux_syn().seq(conn.guest_iss).ack(conn.peer_seq(9 << 20)),
            ] {
                let before = conn.flow;
                let action = conn.guest_sends(stray);
                assert_eq!(action.forget, 0, "the flow was forgotten");
                assert_eq!(before.snd_nxt, conn.flow.snd_nxt);
                assert_eq!((stage(&conn), before.flags), (sys::STAGE_ESTABLISHED, conn.flow.flags));
                assert_eq!(is_dropped(&action), params.0.police != 0, "policed: unknown options");
            }
            conn.peer_ack_segs(3);
            let sent = 3 * conn.mss();
            assert_translated(&mut conn, 0, sent);
        }
    }
}

/// Sends full segments beyond the window. Returns how many pass.
fn passes_beyond_the_window(conn: &mut Conn, from: u32) -> u32 {
    let mss = conn.mss();
    let mut passed = 0;
    for number in 0..500 {
        let data = conn.data(from + number * mss, mss);
        passed += u32::from(!is_dropped(&conn.guest_sends(data)));
    }
    passed
}

#[test]
fn no_syn_of_the_guest_ends_policing() {
    type Trick = fn(&mut Conn);
    let tricks: [(&str, Trick); 6] = [
        ("a SYN", |conn| {
            conn.guest_sends(linux_syn().seq(0x8000_0000));
        }),
        ("its own SYN", |conn| {
            conn.guest_sends(linux_syn().seq(conn.guest_iss));
        }),
        ("a SYN-ACK", |conn| {
            conn.guest_sends(linux_syn().seq(0x8000_0000).ack(conn.peer_seq(0)));
        }),
        ("a FIN far ahead", |conn| {
            conn.guest_sends(conn.data(1 << 20, 0).fin());
        }),
        ("a FIN that the peer accepts", |conn| {
            conn.guest_sends(conn.data(500_000, 0).fin());
        }),
        ("an unacceptable RST", |conn| {
            conn.guest_sends(conn.data(1 << 30, 0).rst());
        }),
    ];
    let mut conn = Conn::established(policing(), 5);
    // The SYN-ACK's window is used up, and a full window is in flight.
    conn.send_segs(0, 44);
    let mss = conn.mss();
    conn.guest_gets(conn.ack(44 * mss).len(10));
    conn.guest_acks(10);
    for (what, trick) in tricks {
        let mut conn = conn.clone();
        let edge = conn.flow.right_edge.wrapping_sub(conn.flow.snd_nxt);
        trick(&mut conn);
        let passed = passes_beyond_the_window(&mut conn, 44 * mss);
        assert!(passed <= edge / mss, "after {what}: {passed} of 500 passed");
    }
}

#[test]
fn data_before_the_handshake_completes_is_limited() {
    // A server may answer data on a SYN at once (RFC 7413, 4.2.2).
    let mut conn = Conn::new(policing(), 5);
    conn.guest_syn(linux_syn());
    assert!(is_dropped(&conn.send(0, 1000)), "SYN-SENT");
    let mut conn = Conn::new(policing(), 5);
    conn.peer_syn(linux_syn());
    assert!(is_dropped(&conn.send(0, 1000)), "no SYN-ACK yet");
    conn.guest_synack(linux_syn());
    let passed = (0..500).filter(|n| !is_dropped(&conn.send(n * 1000, 1000))).count();
    assert!((10..=65).contains(&passed), "SYN-RECEIVED: {passed} of 500 passed");
    // Without policing, it may.
    let mut conn = Conn::new(Params::default(), 5);
    conn.guest_syn(linux_syn());
    assert!(!is_dropped(&conn.send(0, 1000)));
}
