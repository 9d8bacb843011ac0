//! The window shown to the guest: laws 1 to 4 and 12.

use crate::common::*;
use vcc_engine::{Params, Underlay, sys};

fn window_max(bytes: u32) -> Params {
    params(|p| p.window_max_bytes = bytes)
}

#[test]
fn never_more_than_the_receiver_advertised() {
    for isn in ISNS {
        let mut conn = Conn::established(Params::default(), isn);
        conn.send_segs(0, 3);
        for (segs, field) in [(1, 10), (2, 1), (3, 0)] {
            let shown = conn.guest_gets(conn.ack(segs * conn.mss()).win(field));
            assert!(conn.shown_bytes(&shown) <= u32::from(field) << PEER_WSCALE);
        }
    }
}

#[test]
fn a_window_beyond_the_field_is_the_largest_possible() {
    let mut conn = Conn::opened(
        params(|p| p.initial_window_segs = 60_000),
        5,
        linux_syn(),
        linux_syn().wscale(14),
    );
    let shown = conn.guest_gets(conn.ack(0).win(u16::MAX));
    assert_eq!(shown.window, u16::MAX);
}

#[test]
fn cwnd_decides_in_whole_segments() {
    for isn in ISNS {
        let mut conn = Conn::established(Params::default(), isn);
        let mut sent = 0;
        for _ in 0..50 {
            let cwnd_segs = conn.cwnd();
            conn.send_segs(sent, sent + 2);
            sent += 2;
            let shown = conn.peer_ack_segs(sent);
            assert_eq!(conn.shown_bytes(&shown), conn.cwnd().max(cwnd_segs) * conn.mss());
        }
    }
}

#[test]
fn the_right_edge_never_moves_left() {
    for prr in [0, 1] {
        for isn in ISNS {
            let mut conn = Conn::established(params(|p| p.prr = prr), isn);
            conn.send_segs(0, 20);
            let mut edge_bytes = 0;
            for segs in 1..=20 {
                let mss_bytes = conn.mss();
                let ack = conn.ack(segs * mss_bytes);
                let shown = conn.guest_gets(if segs % 3 == 0 { ack.ece() } else { ack });
                let shown_edge_bytes = conn.shown_edge(segs * mss_bytes, &shown);
                assert!(shown_edge_bytes >= edge_bytes, "after {segs} segments");
                assert!(shown_edge_bytes >= 20 * mss_bytes, "below the flight");
                edge_bytes = shown_edge_bytes;
            }
        }
    }
}

#[test]
fn the_edge_holds_through_a_timeout() {
    let mut conn = Conn::established(Params::default(), 5);
    conn.send_segs(0, 10);
    let before = conn.peer_ack_segs(1);
    let edge_bytes = conn.shown_edge(conn.mss(), &before);
    conn.wait_us(5_000_000).deadline();
    assert_eq!(conn.cwnd(), 1);
    let after = conn.peer_ack_segs(2);
    assert!(conn.shown_edge(2 * conn.mss(), &after) >= edge_bytes);
}

#[test]
fn the_receivers_own_shrinking_is_passed_on() {
    let mut conn = Conn::established(Params::default(), 5);
    conn.send_segs(0, 10);
    conn.peer_ack_segs(1);
    let shown = conn.guest_gets(conn.ack(2 * conn.mss()).win(1));
    assert_eq!(conn.shown_bytes(&shown), 1 << PEER_WSCALE);
}

#[test]
fn non_zero_never_becomes_zero() {
    // Regression: `rwnd >> wscale` reached 0.
    for (mss_bytes, wscale) in [(1460, 14), (536, 14), (88, 14), (1460, 0)] {
        let peer = linux_syn().mss(mss_bytes).wscale(wscale);
        let tiny = params(|p| {
            p.initial_window_segs = 1;
            p.window_max_bytes = u32::MAX;
        });
        let mut conn = Conn::opened(tiny, 5, linux_syn(), peer);
        for step in 0..20 {
            conn.send_segs(step, step + 1);
            let shown = conn.guest_gets(conn.ack((step + 1) * conn.mss()).win(1).ece());
            assert_eq!(shown.window, 1 << (wscale - conn.flow.wscale_shown), "offered: 1 unit");
            let shown = conn.guest_gets(conn.ack((step + 1) * conn.mss()).win(u16::MAX));
            assert!(shown.window > 0);
        }
    }
}

#[test]
fn zero_stays_zero() {
    let mut conn = Conn::established(Params::default(), 5);
    conn.send_segs(0, 1);
    assert_eq!(conn.guest_gets(conn.ack(conn.mss()).win(0)).window, 0);
    let opened = conn.peer_ack_segs(1);
    assert!(!is_dropped(&opened), "the update that opens the window");
    assert!(opened.window > 0);
}

#[test]
fn the_floor_is_a_parameter() {
    for floor_segs in [0, 1, 2, 4] {
        let mut conn = Conn::established(
            params(|p| {
                p.window_floor_segs = floor_segs;
                p.initial_window_segs = 2;
            }),
            5,
        );
        conn.send_segs(0, 1);
        conn.guest_gets(conn.ack(conn.mss()).ece());
        conn.wait_us(2_000_000);
        conn.send_segs(1, 2);
        conn.wait_us(2_000_000).deadline();
        conn.send_segs(1, 2);
        let shown = conn.peer_ack_segs(2);
        assert!(conn.shown_bytes(&shown) >= floor_segs.max(1) * conn.mss());
    }
}

#[test]
fn a_duplicate_repeats_the_window() {
    // Otherwise a guest without SACK does not count it (RFC 5681, 2).
    for isn in ISNS {
        let mut conn = Conn::established(Params::default(), isn).without_sack();
        conn.send_segs(0, 10);
        let before = conn.peer_ack_segs(1);
        // The window is full: limited transmit (RFC 3042) would move its right edge.
        conn.send_segs(10, 12);
        for number in 1..9 {
            let duplicate = conn.peer_ack_segs(1);
            assert!(!is_dropped(&duplicate));
            assert_eq!(duplicate.window, before.window, "duplicate {number}");
        }
        conn.send_segs(1, 2);
        conn.peer_ack_segs(2);
        let first = conn.guest_gets(conn.ack(2 * conn.mss()).ece());
        let second = conn.guest_gets(conn.ack(2 * conn.mss()).ece());
        assert_eq!(first.window, second.window, "with ECE");
    }
}

#[test]
fn a_duplicate_with_sack_never_exceeds_the_current_offer() {
    let mut conn = Conn::established(Params::default(), 5);
    conn.send_segs(0, 10);
    conn.peer_ack_segs(1);
    let duplicate = conn.guest_gets(conn.ack(conn.mss()).win(3).sack());
    assert_eq!(conn.shown_bytes(&duplicate), 3 << PEER_WSCALE);
}

#[test]
fn a_sack_duplicate_after_zero_window() {
    let mut conn = Conn::established(Params::default(), 5);
    conn.send_segs(0, 10);
    conn.guest_gets(conn.ack(conn.mss()).win(0));
    let duplicate = conn.guest_gets(conn.ack(conn.mss()).sack());
    assert!(duplicate.window > 0);
}

#[test]
fn an_update_that_looks_like_a_duplicate_is_dropped() {
    // The receiver moved its window; clamped, the ACK would count as a duplicate.
    for isn in ISNS {
        let mut conn = Conn::established(Params::default(), isn);
        conn.send_segs(0, 4);
        conn.peer_ack_segs(1);
        for step in 1..5 {
            let update = conn.guest_gets(conn.ack(conn.mss()).win(PEER_WINDOW + step));
            assert!(is_dropped(&update));
        }
        assert_eq!((conn.flow.drops, conn.flow.dupacks, conn.flow.reductions), (4, 0, 0));
        // An update that the guest can use passes.
        let mut conn = Conn::established(Params::default(), isn);
        conn.send_segs(0, 4);
        conn.guest_gets(conn.ack(conn.mss()).win(5));
        let update = conn.guest_gets(conn.ack(conn.mss()).win(50));
        assert!(!is_dropped(&update));
    }
}

#[test]
fn other_acks_are_not_dropped() {
    let mut conn = Conn::established(Params::default(), 5);
    conn.send_segs(0, 4);
    conn.peer_ack_segs(1);
    let mss_bytes = conn.mss();
    assert!(!is_dropped(&conn.guest_gets(conn.ack(mss_bytes).win(999).len(10))), "data");
    assert!(!is_dropped(&conn.guest_gets(conn.ack(mss_bytes).win(998).rst())), "RST");
    assert!(!is_dropped(&conn.guest_gets(conn.ack(mss_bytes).win(997).sack())), "SACK");
    assert!(!is_dropped(&conn.guest_gets(conn.ack(mss_bytes).win(996).fin())), "FIN");
    conn.peer_ack_segs(4);
    assert!(!is_dropped(&conn.guest_gets(conn.ack(4 * mss_bytes).win(995))), "nothing in flight");
}

#[test]
fn an_old_ack_does_not_move_the_right_edge() {
    for isn in ISNS {
        let mut conn = Conn::established(Params::default(), isn);
        conn.send_segs(0, 8);
        let mss_bytes = conn.mss();
        let shown = conn.peer_ack_segs(5);
        let edge_bytes = conn.shown_edge(5 * mss_bytes, &shown);
        let old = conn.peer_ack_segs(2);
        assert_eq!(conn.shown_edge(2 * mss_bytes, &old), edge_bytes);
    }
}

#[test]
fn mss_clamp_exactness() {
    const KIB: u32 = 1024;
    // (MSS option, timestamps, largest window, payload of a segment, scale)
    let cases = [
        (1460, true, 512 * KIB, 1448, 3),
        (1460, false, 512 * KIB, 1456, 3),
        (8960, true, 512 * KIB, 8944, 3),
        (1460, true, 2048 * KIB, 1440, 5),
        (1460, false, 2048 * KIB, 1440, 5),
        (8960, true, 2048 * KIB, 8928, 5),
        (1460, true, 256 * KIB, 1448, 2),
        (1460, false, 256 * KIB, 1460, 2),
    ];
    for (mss_bytes, timestamps, max_bytes, payload_bytes, scale) in cases {
        let mut syn = linux_syn().mss(mss_bytes);
        let mut overhead_bytes = 12;
        if !timestamps {
            syn = syn.without(sys::OPT_TIMESTAMPS);
            overhead_bytes = 0;
        }
        let mut opened = Conn::new(window_max(max_bytes), 5);
        opened.guest_syn(syn);
        let to_opener = opened.peer_synack(syn);
        let mut accepted = Conn::new(window_max(max_bytes), 5);
        let to_listener = accepted.peer_syn(syn);
        accepted.guest_synack(syn);
        accepted.peer_ack(0);
        for (conn, shown) in [(opened, to_opener), (accepted, to_listener)] {
            assert_eq!(
                (shown.wscale, u32::from(shown.mss)),
                (scale, payload_bytes + overhead_bytes)
            );
            assert_eq!((conn.mss(), conn.flow.wscale_shown), (payload_bytes, scale));
            assert_eq!(payload_bytes % (1 << scale), 0);
        }
    }
}

/// A listener may answer without timestamps or with a smaller MTU, so its segments are no multiple
/// of the unit. A window has room for each granted segment and for no more.
#[test]
fn a_window_has_room_for_segments_of_any_size() {
    for mss_option in 1360..=1460 {
        for without in [0, sys::OPT_TIMESTAMPS, sys::OPT_SACK_PERMITTED] {
            let answer = linux_syn().mss(mss_option).without(without);
            let mut conn = Conn::accepted(Params::default(), 5, linux_syn(), answer);
            let mss_bytes = conn.mss();
            for cwnd_segs in [2, 3, 4, 7, 10, 33, 100] {
                conn.flow.0.cc.cwnd_segs = cwnd_segs;
                conn.flow.0.cc.ssthresh_segs = 1;
                conn.flow.0.right_edge = conn.flow.snd_una;
                let from = conn.flow.snd_una.wrapping_sub(conn.seq(0));
                conn.send(from, mss_bytes);
                let shown = conn.peer_ack(from + mss_bytes);
                let shown_bytes = conn.shown_bytes(&shown);
                let unit_bytes = 1 << conn.flow.wscale_shown;
                let shown = format!("{shown_bytes} for {cwnd_segs} of {mss_bytes}");
                assert_eq!(shown_bytes / mss_bytes, cwnd_segs, "{shown}");
                assert!(shown_bytes % mss_bytes < unit_bytes, "{shown}");
            }
        }
    }
}

#[test]
fn the_guests_own_syn_is_not_clamped() {
    // Its receive limits concern only guest and peer.
    let mut conn = Conn::new(Params::default(), 5);
    let syn = conn.guest_syn(linux_syn());
    assert_eq!((syn.mss, syn.wscale), (1460, 10));
    let mut conn = Conn::new(Params::default(), 5);
    conn.peer_syn(linux_syn());
    let answer = conn.guest_synack(linux_syn());
    assert_eq!((answer.mss, answer.wscale), (1460, 10));
}

#[test]
fn mss_clamp_never_eats_the_segment() {
    for max_bytes in [1 << 24, 1 << 26, 1 << 28, 1 << 30, u32::MAX] {
        for syn in [linux_syn(), linux_syn().without(sys::OPT_TIMESTAMPS)] {
            let answer = syn.wscale(14);
            let mut opened = Conn::new(window_max(max_bytes), 5);
            opened.guest_syn(syn);
            let shown = opened.peer_synack(answer);
            assert!(shown.mss >= 1460 / 2, "shown an MSS of {}", shown.mss);
            assert!(opened.mss() >= 1448 / 2);
            let mut accepted = Conn::new(window_max(max_bytes), 5);
            let shown = accepted.peer_syn(answer);
            assert!(shown.mss >= 1460 / 2, "shown an MSS of {}", shown.mss);
        }
    }
}

#[test]
fn a_smaller_scale_of_the_peer_is_kept() {
    for wscale in 0..5 {
        let conn = Conn::opened(Params::default(), 5, linux_syn(), linux_syn().wscale(wscale));
        assert_eq!(conn.flow.wscale_shown, wscale);
    }
}

#[test]
fn a_guest_without_scaling_sees_unscaled_windows() {
    let plain = linux_syn().without(sys::OPT_WSCALE);
    for (guest, peer) in [(plain, linux_syn()), (linux_syn(), plain), (plain, plain)] {
        let opened = Conn::opened(Params::default(), 5, guest, peer);
        let accepted = Conn::accepted(Params::default(), 5, peer, guest);
        for mut conn in [opened, accepted] {
            conn.send_segs(0, 2);
            let shown = conn.guest_gets(conn.ack(2 * conn.mss()).win(u16::MAX));
            assert_eq!(u32::from(shown.window), conn.cwnd() * conn.mss());
            let shown = conn.guest_gets(conn.ack(2 * conn.mss()).win(100));
            assert_eq!(shown.window, 100);
        }
    }
}

#[test]
fn the_transparent_underlay_shows_the_peers_own_window() {
    let transparent = params(|p| p.underlay = "transparent".parse::<Underlay>().unwrap().number());
    let mut conn = Conn::opened(transparent, 5, linux_syn(), linux_syn());
    conn.send_segs(0, 4);
    let ack = conn.ack(conn.mss()).ece();
    assert_untouched(&conn.guest_gets(ack), &ack.0);
    assert_eq!(conn.flow.reductions, 0);
    assert_eq!(conn.flow.snd_una, conn.seq(conn.mss()), "tracked nevertheless");
}

#[test]
fn a_mode_that_changes_under_a_flow_keeps_its_scale() {
    // The guest keeps reading windows at the scale it was shown.
    let mut conn = Conn::established(Params::default(), 5);
    conn.params = params(|p| p.mode = sys::MODE_SHADOW as u8);
    let shown = conn.peer_ack(0);
    assert_eq!(conn.shown_bytes(&shown), (u32::from(PEER_WINDOW) << PEER_WSCALE).min(65535 << 5));
}

/// Linux defers less than a third of a window until the next ACK (tcp_tso_should_defer), so three
/// of four segments, or all but 64 KiB of a large window, count as full. Without super-segments
/// they do not.
#[test]
fn a_guest_with_tso_need_not_fill_its_window() {
    let grows = |cwnd_segs: u32, sent_segs: u32, tso: bool| {
        let mut conn = Conn::established(params(|_| ()), 5);
        conn.flow.0.cc.cwnd_segs = cwnd_segs;
        conn.flow.0.cc.ssthresh_segs = 2;
        let mss_bytes = conn.mss();
        for round in 0..2 * cwnd_segs {
            let from = round * sent_segs;
            let data = conn.data(from * mss_bytes, sent_segs * mss_bytes);
            conn.guest_sends(if tso { data.cut(mss_bytes) } else { data });
            conn.wait_us(1000).peer_ack_segs(from + sent_segs);
        }
        conn.cwnd() > cwnd_segs
    };
    assert!(grows(4, 3, true));
    assert!(!grows(4, 2, true));
    assert!(grows(30, 21, true));
    assert!(!grows(30, 19, true));
    assert!(!grows(30, 21, false));
    assert!(grows(30, 30, false));
    assert!(!grows(300, 230, true), "another super-segment would have fit");
}
