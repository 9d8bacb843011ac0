//! Options and ECN that both roles negotiate.

use super::*;

#[test]
fn guest_opens() {
    for isn in ISNS {
        let conn = Conn::established(Params::default(), isn);
        assert_eq!(u32::from(conn.flow.stage), sys::STAGE_ESTABLISHED);
        assert_eq!(conn.flow.snd_una, conn.seq(0));
        assert_eq!(conn.flow.snd_nxt, conn.seq(0));
        for flag in [sys::FLOW_GUEST_OPENED, sys::FLOW_SACK, sys::FLOW_TIMESTAMPS, sys::FLOW_WSCALE]
        {
            assert!(conn.flow.has(flag), "flag {flag:#x}");
        }
        assert!(conn.flow.has(sys::FLOW_ECN_FABRIC));
        assert!(!conn.flow.has(sys::FLOW_ECN_GUEST));
        assert!(conn.flow.is_managed());
        assert_eq!(conn.flow.wscale_peer, PEER_WSCALE);
    }
}

#[test]
fn guest_listens() {
    for isn in ISNS {
        let conn =
            Conn::accepted(Params::default(), isn, linux_syn().asking_ecn(), linux_syn().wscale(7));
        assert_eq!(u32::from(conn.flow.stage), sys::STAGE_ESTABLISHED);
        assert!(!conn.flow.has(sys::FLOW_GUEST_OPENED));
        assert!(conn.flow.has(sys::FLOW_ECN_FABRIC));
        assert!(!conn.flow.has(sys::FLOW_ECN_GUEST));
        assert!(conn.flow.is_managed());
        // The peer's scale applies, not the guest's.
        assert_eq!(conn.flow.wscale_peer, PEER_WSCALE);
        assert_eq!(conn.flow.snd_una, conn.seq(0));
    }
}

#[test]
fn syn_windows_stay_untouched() {
    let mut conn = Conn::new(Params::default(), 1);
    assert_eq!(conn.guest_syn(linux_syn().win(777)).window, 777);
    assert_eq!(conn.peer_synack(linux_syn().ece().win(65535)).window, 65535);

    let mut conn = Conn::new(Params::default(), 1);
    assert_eq!(conn.peer_syn(linux_syn().win(1)).window, 1);
    assert_eq!(conn.guest_synack(linux_syn().win(28960)).window, 28960);
}

#[test]
fn the_ack_that_ends_the_handshake_is_not_clamped_to_a_segment() {
    // Linux limits its segments to half of the largest window that it has seen.
    let params = params(|p| p.initial_window_segs = 1);
    let mut conn = Conn::new(params, 1);
    conn.peer_syn(linux_syn());
    conn.guest_synack(linux_syn());
    let ack = conn.peer_ack(0);
    assert!(conn.shown_bytes(&ack) >= 2 * conn.mss(), "{} bytes", conn.shown_bytes(&ack));
}

#[test]
fn peer_declines_ecn() {
    let conn = {
        let mut conn = Conn::new(Params::default(), 5);
        conn.guest_syn(linux_syn());
        conn.peer_synack(linux_syn());
        conn
    };
    assert!(!conn.flow.has(sys::FLOW_ECN_FABRIC));
    assert!(conn.flow.is_managed());
}

#[test]
fn simultaneous_open() {
    // RFC 9293, figure 7. Of SYNs and of SYN-ACKs, the peer's may come before or after the guest's.
    for (syn_first, peer_first) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut conn = Conn::new(Params::default(), 0xffff_ffff);
        if !syn_first {
            conn.guest_syn(linux_syn());
        }
        conn.wait_us(1000).peer_syn(linux_syn().win(65535));
        if syn_first {
            conn.guest_syn(linux_syn());
        }
        let forget = if peer_first {
            conn.peer_synack(linux_syn());
            conn.guest_synack(linux_syn()).forget
        } else {
            let forget = conn.guest_synack(linux_syn()).forget;
            conn.peer_synack(linux_syn());
            forget
        };
        assert_eq!(forget, 0, "peer first: {peer_first}");
        assert_eq!(u32::from(conn.flow.stage), sys::STAGE_ESTABLISHED);
        assert_eq!((conn.flow.wscale_peer, conn.flow.wscale_shown), (PEER_WSCALE, 5));
        assert!(conn.flow.is_managed());
        conn.send_segs(0, 2);
        conn.peer_ack_segs(2);
        assert_eq!(conn.flow.flight_bytes(), 0);
    }
}

#[test]
fn simultaneous_open_completed_by_a_plain_ack() {
    for syn_first in [false, true] {
        let mut conn = Conn::new(Params::default(), 7);
        if !syn_first {
            conn.guest_syn(linux_syn());
        }
        conn.peer_syn(linux_syn());
        if syn_first {
            conn.guest_syn(linux_syn());
        }
        conn.guest_synack(linux_syn());
        conn.peer_ack(0);
        assert_eq!(u32::from(conn.flow.stage), sys::STAGE_ESTABLISHED);
        assert_eq!((conn.flow.wscale_peer, conn.flow.wscale_shown), (PEER_WSCALE, 5));
    }
}

#[test]
fn a_syn_of_the_guest_long_after_the_peers_opens_another_connection() {
    let mut conn = Conn::new(Params::default(), 7);
    // The guest has dropped it without a word; it may be forged.
    conn.peer_syn(linux_syn().wscale(3));
    let action = conn.wait_us(200_000).guest_syn(linux_syn());
    assert_eq!(
        u32::from(action.flags) & (sys::TCP_ECE | sys::TCP_CWR),
        sys::TCP_ECE | sys::TCP_CWR
    );
    conn.peer_synack(linux_syn().ece());
    assert_eq!((conn.flow.wscale_peer, conn.flow.wscale_shown), (PEER_WSCALE, 5));
    assert!(conn.flow.has(sys::FLOW_ECN_FABRIC));
}

#[test]
fn an_option_counts_only_if_both_sides_have_it() {
    let lacking: [(u32, u32); 3] = [
        (sys::OPT_SACK_PERMITTED, sys::FLOW_SACK),
        (sys::OPT_TIMESTAMPS, sys::FLOW_TIMESTAMPS),
        (sys::OPT_WSCALE, sys::FLOW_WSCALE),
    ];
    for (option, flag) in lacking {
        for (guest, peer) in
            [(linux_syn().without(option), linux_syn()), (linux_syn(), linux_syn().without(option))]
        {
            let opened = Conn::opened(Params::default(), 5, guest, peer);
            let accepted = Conn::accepted(Params::default(), 5, peer, guest);
            for conn in [opened, accepted] {
                assert!(!conn.flow.has(flag), "flag {flag:#x}");
                let rest = (sys::FLOW_SACK | sys::FLOW_TIMESTAMPS | sys::FLOW_WSCALE) & !flag;
                assert_eq!(conn.flow.flags & rest, rest, "without option {option:#x}");
                if flag == sys::FLOW_WSCALE {
                    assert_eq!((conn.flow.wscale_peer, conn.flow.wscale_shown), (0, 0));
                }
            }
        }
    }
}

#[test]
fn a_peer_without_mss_option_has_an_mss_of_536_bytes() {
    // RFC 9293, 3.7.1.
    let peer = linux_syn().without(sys::OPT_MSS).without(sys::OPT_TIMESTAMPS);
    let conn = Conn::opened(Params::default(), 5, linux_syn(), peer);
    assert_eq!(conn.flow.mss_bytes, 536);
    let conn = Conn::accepted(Params::default(), 5, peer, linux_syn());
    assert_eq!(conn.flow.mss_bytes, 536);
}

#[test]
fn an_absurd_mss_breaks_nothing() {
    for mss_bytes in [0, 1, 12, 13, 255, 256, u16::MAX] {
        for timestamps in [false, true] {
            let mut syn = linux_syn().mss(mss_bytes);
            if !timestamps {
                syn = syn.without(sys::OPT_TIMESTAMPS);
            }
            let mut conn = Conn::opened(Params::default(), 5, linux_syn().mss(u16::MAX), syn);
            assert!(conn.mss() >= 1);
            conn.send(0, 100);
            let ack = conn.peer_ack(100);
            assert!(ack.window >= 1);
        }
    }
}

#[test]
fn a_scale_beyond_14_means_14() {
    // RFC 7323, 2.3: "if a shift count larger than 14 is received, use 14".
    for wscale in [14, 15, 255] {
        let opened = Conn::opened(Params::default(), 5, linux_syn(), linux_syn().wscale(wscale));
        let accepted =
            Conn::accepted(Params::default(), 5, linux_syn().wscale(wscale), linux_syn());
        for conn in [opened, accepted] {
            assert_eq!(conn.flow.wscale_peer, 14);
            assert!(conn.flow.wscale_shown <= 14);
        }
    }
}

#[test]
fn draining_takes_no_new_flows() {
    let draining = params(|p| p.mode = sys::MODE_DRAIN as u8);
    let mut conn = Conn::new(draining, 5);
    let action = conn.guest_syn(linux_syn());
    assert_eq!(action.forget, 1);
    assert_untouched(&action, &linux_syn().0);
    let action = Conn::new(draining, 5).peer_syn(linux_syn());
    assert_eq!(action.forget, 1);
    assert_untouched(&action, &linux_syn().0);

    // Existing flows stay enforced.
    let mut conn = Conn::established(Params::default(), 5);
    conn.params = draining;
    assert!(is_ect0(&conn.send(0, 1000)));
    let ack = conn.peer_ack(1000);
    assert!(conn.shown_bytes(&ack) <= conn.cwnd() * conn.mss());
}

#[test]
fn data_in_a_fast_open_handshake_is_tracked() {
    // RFC 7413: a server may send before the handshake's last ACK, which then covers that data.
    let mut conn = Conn::new(Params::default(), 5);
    conn.peer_syn(linux_syn());
    conn.guest_synack(linux_syn());
    conn.send(0, 1000);
    conn.peer_ack(1000);
    assert_eq!(u32::from(conn.flow.stage), sys::STAGE_ESTABLISHED);
    assert_eq!(conn.flow.snd_una, conn.seq(1000));
}

#[test]
fn each_side_has_its_own_mss() {
    // RFC 9293, 3.7.1: the guest's MSS option does not limit its own segments.
    let conn = {
        let mut conn = Conn::new(Params::default(), 5);
        conn.guest_syn(linux_syn().mss(1040));
        let shown = conn.peer_synack(linux_syn().mss(1340).ece());
        // 1328 bytes of payload, rounded down to a multiple of 32.
        assert_eq!(shown.mss, 1312 + 12);
        conn.guest_acks(0);
        conn
    };
    assert_eq!((conn.flow.mss_bytes, conn.flow.mss_max_bytes), (1028, 1312));
    let mut conn = conn;
    conn.send(0, 1312);
    conn.send(1312, 1312);
    assert_eq!(conn.mss(), 1312, "the guest's own segments correct it");
    let ack = conn.peer_ack(2624);
    assert_eq!(conn.shown_bytes(&ack) % 1312, 0, "whole segments");

    let mut conn = Conn::accepted(Params::default(), 5, linux_syn(), linux_syn().mss(600));
    assert_eq!(conn.flow.mss_max_bytes, 1440);
    conn.send(0, 1440);
    conn.send(1440, 1440);
    let ack = conn.peer_ack(2880);
    assert_eq!((conn.mss(), conn.shown_bytes(&ack) % 1440), (1440, 0), "whole segments");
    // A retransmitted SYN-ACK shows the same values.
    let mut conn = Conn::new(Params::default(), 5);
    conn.guest_syn(linux_syn().mss(1040));
    let first = conn.peer_synack(linux_syn().mss(1340));
    conn.guest_acks(0);
    assert_same_rewriting(&first, &conn.peer_synack(linux_syn().mss(1340)));
}
