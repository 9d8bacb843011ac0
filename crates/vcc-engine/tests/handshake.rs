//! The handshake: what was negotiated, in both roles (RFC 9293, 3.5).

use crate::common::*;
use vcc_engine::{Mode, Params, sys};

const ECN_BITS: u32 = sys::TCP_AE | sys::TCP_CWR | sys::TCP_ECE;

/// What a guest is told must not depend on which copy of a segment reaches it.
#[track_caller]
fn assert_same_rewriting(first: &vcc_engine::Action, second: &vcc_engine::Action) {
    assert_eq!(
        (first.flags, first.window, first.mss, first.wscale, first.ip_ecn),
        (second.flags, second.window, second.mss, second.wscale, second.ip_ecn)
    );
}

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
        // The peer's scale counts, not the guest's.
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
    // Linux bounds its segments to half of the largest window that it has seen.
    let params = params(|p| p.initial_window_segs = 1);
    let mut conn = Conn::new(params, 1);
    conn.peer_syn(linux_syn());
    conn.guest_synack(linux_syn());
    let ack = conn.peer_ack(0);
    assert!(conn.shown_bytes(&ack) >= 2 * conn.mss(), "{} bytes", conn.shown_bytes(&ack));
}

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
    // We have sent a non-ECN-setup SYN, so ECT is forbidden whatever comes (RFC 3168, 6.1.1).
    let mut conn = Conn::new(Params::default(), 5);
    conn.guest_syn(linux_syn());
    conn.wait_us(1_000_000).guest_syn(linux_syn());
    let answer = conn.peer_synack(linux_syn().ece());
    assert!(lacks_flags(&answer, ECN_BITS), "the guest asked for no ECN");
    assert!(is_not_ect(&conn.send(0, 1000)));
    // The peer believes in ECN and marks its data. The guest knows of none (law 5), and the mark
    // must not be lost: to echo it is not forbidden.
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
fn a_new_connection_tries_ecn_again() {
    let mut conn = Conn::new(Params::default(), 5);
    conn.guest_syn(linux_syn());
    conn.wait_us(1_000_000).guest_syn(linux_syn());
    // The guest gave up and reuses the port: another sequence number, another connection.
    conn.guest_iss = 99_999;
    assert!(has_flags(&conn.guest_syn(linux_syn()), sys::TCP_ECE | sys::TCP_CWR));
    assert!(!conn.flow.has(sys::FLOW_ECN_FELL_BACK));
    conn.peer_synack(linux_syn().ece());
    assert!(conn.flow.has(sys::FLOW_ECN_FABRIC));
    assert_eq!(conn.flow.snd_una, conn.seq(0));
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
fn repeated_synack_looks_as_the_first_did() {
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
fn repeated_syn_of_the_peer_looks_as_the_first_did() {
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
fn guest_repeats_its_syn_when_the_synack_never_reached_it() {
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
fn guest_repeats_its_synack_after_the_last_ack_was_lost_on_the_tap() {
    let mut conn =
        Conn::accepted(Params::default(), 5, linux_syn().asking_ecn(), linux_syn().wscale(7));
    let again = conn.wait_us(1_000_000).guest_synack(linux_syn().wscale(7));
    assert_eq!(again.forget, 0, "its windows are rewritten: it must not be forgotten");
    assert!(has_flags(&again, sys::TCP_ECE), "as the first was");
    assert!(conn.flow.is_managed());
}

#[test]
fn guest_repeats_its_synack_after_data_was_lost_on_the_tap() {
    let mut conn = Conn::accepted(Params::default(), 5, linux_syn().asking_ecn(), linux_syn());
    // The port has seen the peer's data; the guest has not, nor the ACK before it.
    conn.guest_gets(conn.ack(0).len(100_000));
    let again = conn.wait_us(1_000_000).guest_synack(linux_syn());
    assert_eq!(again.forget, 0);
    assert!(has_flags(&again, sys::TCP_ECE));
    assert!(conn.flow.is_managed());
}

#[test]
fn simultaneous_open() {
    // RFC 9293, figure 7. The peer's SYN-ACK may come before or after the guest's own.
    for peer_first in [false, true] {
        let mut conn = Conn::new(Params::default(), 0xffff_ffff);
        conn.guest_syn(linux_syn());
        conn.wait_us(1000).peer_syn(linux_syn().win(65535));
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
        assert_eq!(conn.flow.wscale_peer, PEER_WSCALE);
        assert!(conn.flow.is_managed());
        conn.send_segs(0, 2);
        conn.peer_ack_segs(2);
        assert_eq!(conn.flow.flight_bytes(), 0);
    }
}

#[test]
fn simultaneous_open_ended_by_a_plain_ack() {
    let mut conn = Conn::new(Params::default(), 7);
    conn.guest_syn(linux_syn());
    conn.peer_syn(linux_syn());
    conn.guest_synack(linux_syn());
    conn.peer_ack(0);
    assert_eq!(u32::from(conn.flow.stage), sys::STAGE_ESTABLISHED);
}

#[test]
fn an_option_counts_only_where_both_have_it() {
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
fn a_peer_without_mss_option_takes_536_bytes() {
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
    // The guest lost its state and opens again: once the peer has answered that, its word counts.
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

    // And in the other role.
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
    // Neither is acceptable to the guest, which goes on (RFC 5961, 3.2 and 4.2).
    conn.guest_gets(seg().rst().seq(77));
    conn.guest_gets(linux_syn().seq(123_456));
    conn.send_segs(3, 4);
    conn.peer_ack_segs(4);
    assert!(conn.flow.is_managed(), "the guest believes in a rewritten scale");
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
fn what_was_not_seen_from_its_syn_passes_untouched() {
    // Law 8: its scale is unknown.
    let mut conn = Conn::new(Params::default(), 5);
    let data = conn.data(0, 1000);
    let ack = conn.ack(1000).ece().ce();
    assert_untouched(&conn.guest_sends(data), &data.0);
    assert_untouched(&conn.guest_gets(ack), &ack.0);
    assert!(!conn.flow.is_managed());
}

#[test]
fn a_synack_to_an_unseen_syn_is_not_taken_over() {
    let mut conn = Conn::new(Params::default(), 5);
    let answer = linux_syn().seq(9).ack(10);
    assert_untouched(&conn.guest_sends(answer), &answer.0);
    assert!(!conn.flow.is_managed());
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

    // What is there keeps its enforcement.
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
fn a_syn_that_crossed_the_synack_changes_nothing() {
    // The guest's retransmission was under way while the answer passed.
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

#[test]
fn each_side_has_an_mss_of_its_own() {
    // RFC 9293, 3.7.1: what the guest says it takes is no limit on what it sends.
    let conn = {
        let mut conn = Conn::new(Params::default(), 5);
        conn.guest_syn(linux_syn().mss(1040));
        let shown = conn.peer_synack(linux_syn().mss(1340).ece());
        // 1328 bytes of payload, in whole units of 32.
        assert_eq!(shown.mss, 1312 + 12);
        conn.guest_acks(0);
        conn
    };
    assert_eq!((conn.flow.mss_bytes, conn.flow.mss_max_bytes), (1028, 1312));
    let mut conn = conn;
    conn.send(0, 1312);
    conn.send(1312, 1312);
    assert_eq!(conn.mss(), 1312, "the guest's own segments put it right");
    let ack = conn.peer_ack(2624);
    assert_eq!(conn.shown_bytes(&ack) % 1312, 0, "whole segments");

    let mut conn = Conn::accepted(Params::default(), 5, linux_syn(), linux_syn().mss(600));
    assert_eq!(conn.flow.mss_max_bytes, 1440);
    conn.send(0, 1440);
    conn.send(1440, 1440);
    let ack = conn.peer_ack(2880);
    assert_eq!((conn.mss(), conn.shown_bytes(&ack) % 1440), (1440, 0), "whole segments");
    // A repeated answer shows what the first has shown.
    let mut conn = Conn::new(Params::default(), 5);
    conn.guest_syn(linux_syn().mss(1040));
    let first = conn.peer_synack(linux_syn().mss(1340));
    conn.guest_acks(0);
    assert_same_rewriting(&first, &conn.peer_synack(linux_syn().mss(1340)));
}
