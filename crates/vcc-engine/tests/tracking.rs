//! Sequence tracking: sent and acknowledged data (RFC 9293, 3.4; RFC 5681, 2).

use crate::common::*;
use vcc_engine::{Params, sys};

#[test]
fn data_and_acks_move_the_edges() {
    for isn in ISNS {
        let mut conn = Conn::established(Params::default(), isn);
        conn.send(0, 1000);
        conn.send(1000, 24);
        assert_eq!(conn.flow.snd_nxt, conn.seq(1024));
        assert_eq!(conn.flow.flight_bytes(), 1024);
        conn.peer_ack(1000);
        assert_eq!(conn.flow.snd_una, conn.seq(1000));
        conn.peer_ack(1024);
        assert_eq!(conn.flow.flight_bytes(), 0);
    }
}

#[test]
fn retransmissions_are_counted_and_move_nothing() {
    for isn in ISNS {
        let mut conn = Conn::established(Params::default(), isn);
        conn.send_segs(0, 4);
        conn.send(0, 1000);
        conn.send(conn.mss(), conn.mss());
        assert_eq!(conn.flow.retransmissions, 2);
        assert_eq!(conn.flow.snd_nxt, conn.seq(4 * conn.mss()));
    }
}

#[test]
fn a_keep_alive_is_no_retransmission() {
    // RFC 9293, 3.8.4: the byte before snd_una, or no payload.
    for isn in ISNS {
        let mut conn = Conn::established(Params::default(), isn);
        conn.send(0, 1000);
        conn.peer_ack(1000);
        conn.send(999, 1);
        conn.send(999, 0);
        assert_eq!(conn.flow.retransmissions, 0);
        assert_eq!(conn.flow.reductions, 0);
        conn.peer_ack(1000);
        assert_eq!(conn.flow.dupacks, 0, "nothing is in flight");
    }
}

#[test]
fn a_fin_occupies_a_sequence_number() {
    for isn in ISNS {
        let mut conn = Conn::established(Params::default(), isn);
        conn.guest_sends(conn.data(0, 100).fin());
        assert_eq!(conn.flow.snd_nxt, conn.seq(101));
        conn.peer_ack(101);
        assert_eq!(conn.flow.flight_bytes(), 0);
    }
}

#[test]
fn an_ack_beyond_snd_nxt_changes_nothing() {
    for isn in ISNS {
        let mut conn = Conn::established(Params::default(), isn);
        conn.send(0, 1000);
        let before = conn.flow;
        let action = conn.peer_ack(1001);
        assert!(!is_dropped(&action));
        assert_eq!(conn.flow.snd_una, before.snd_una);
        assert_eq!(conn.flow.right_edge, before.right_edge);
        assert_eq!(conn.flow.window_shown, before.window_shown);
    }
}

#[test]
fn duplicate_acks_by_rfc_5681() {
    for isn in ISNS {
        let mut conn = Conn::established(Params::default(), isn).without_sack();
        conn.peer_ack(0);
        assert_eq!(conn.flow.dupacks, 0, "nothing is in flight");
        conn.send_segs(0, 4);
        conn.peer_ack(0);
        assert_eq!(conn.flow.dupacks, 1);
        conn.guest_gets(conn.ack(0).len(10));
        assert_eq!(conn.flow.dupacks, 1, "data");
        conn.guest_gets(conn.ack(0).win(PEER_WINDOW + 1));
        assert_eq!(conn.flow.dupacks, 1, "another window");
        conn.guest_gets(conn.ack(0).win(PEER_WINDOW + 1));
        assert_eq!(conn.flow.dupacks, 2);
        conn.guest_gets(conn.ack(0).win(PEER_WINDOW).sack());
        assert_eq!(conn.flow.dupacks, 3, "SACK blocks count whatever the window");
    }
}

/// A receiver may repeat its acknowledgements (Savage et al. 1999, 2.2).
#[test]
fn with_sack_only_blocks_make_a_duplicate() {
    let mut conn = Conn::established(Params::default(), 5);
    conn.peer_ack(0);
    conn.send_segs(0, 4);
    for _ in 0..3 {
        conn.peer_ack(0);
    }
    assert_eq!((conn.flow.dupacks, conn.flow.reductions), (0, 0));
    conn.guest_gets(conn.ack(0).sack());
    assert_eq!(conn.flow.dupacks, 1);
}

#[test]
fn an_ack_that_moves_clears_the_duplicates() {
    let mut conn = Conn::established(Params::default(), 5).without_sack();
    conn.send_segs(0, 6);
    for segs in 1..5 {
        conn.peer_ack_segs(segs);
        conn.peer_ack_segs(segs);
        conn.peer_ack_segs(segs);
    }
    assert_eq!(conn.flow.reductions, 0, "never three in a row");
}

#[test]
fn an_old_ack_does_not_disturb_the_duplicates() {
    // The guest takes no window from an ACK below snd_una (RFC 9293, 3.10.7.4), so a duplicate
    // repeats the last current ACK.
    for isn in ISNS {
        let mut conn = Conn::established(Params::default(), isn).without_sack();
        conn.send_segs(0, 8);
        let shown = conn.peer_ack_segs(4);
        conn.guest_gets(conn.ack(conn.mss()).win(PEER_WINDOW - 3));
        let duplicate = conn.peer_ack_segs(4);
        assert!(!is_dropped(&duplicate), "the guest needs it");
        assert_eq!(duplicate.window, shown.window);
        assert_eq!(conn.flow.dupacks, 1);
    }
}

#[test]
fn an_old_ack_moves_nothing() {
    for isn in ISNS {
        let mut conn = Conn::established(Params::default(), isn);
        conn.send_segs(0, 8);
        conn.peer_ack_segs(6);
        let before = conn.flow;
        conn.peer_ack_segs(2);
        assert_eq!(conn.flow.snd_una, before.snd_una);
        assert_eq!(conn.flow.dupacks, before.dupacks);
        assert_eq!(conn.cwnd(), before.cc.cwnd_segs);
    }
}

#[test]
fn the_guests_segmentation_sets_the_segment_size() {
    let mut conn = Conn::established(Params::default(), 5);
    // The path MTU shrank.
    conn.guest_sends(conn.data(0, 10_000).cut(1000));
    assert_eq!(conn.flow.mss_bytes, 1000);
    conn.guest_sends(conn.data(10_000, 300));
    assert_eq!(conn.flow.mss_bytes, 1000, "a short segment says nothing");
    conn.guest_sends(conn.data(10_300, 1400));
    assert_eq!(conn.flow.mss_bytes, 1400, "a longer one does");
}

/// Windows count segments, and the guest chooses their size, but not its window in bytes.
#[test]
fn a_window_keeps_its_bytes_at_any_segment_size() {
    for name in ["reno", "reno-ecn", "dctcp", "cubic"] {
        for isn in ISNS {
            let mut conn = Conn::established(underlay(name), isn);
            let worth = |conn: &Conn| conn.cwnd() * conn.mss();
            let before = worth(&conn);
            conn.guest_sends(conn.data(0, 10_000).cut(100));
            assert_eq!((conn.mss(), worth(&conn)), (100, before), "{name}");
            let shown = conn.peer_ack(10_000);
            let grown = worth(&conn);
            assert!(grown <= before + 10_000, "{name}: {grown}");
            assert!(conn.shown_bytes(&shown) < grown + 32, "to the next unit of its scale");
            conn.guest_sends(conn.data(10_000, 14_400).cut(1440));
            assert_eq!(conn.mss(), 1440);
            assert!((grown - 1439..=grown).contains(&worth(&conn)), "{name}: {}", worth(&conn));
        }
    }
}

#[test]
fn changing_the_segment_size_gains_nothing() {
    for name in ["reno-ecn", "dctcp", "cubic"] {
        let mut rng = sim::Rng::new(7);
        let mut conn = Conn::established(underlay(name), 5);
        conn.send_segs(0, 10);
        conn.guest_gets(conn.ack(conn.mss()));
        conn.send_segs(0, 1);
        conn.send_segs(3, 4);
        assert_eq!(conn.flow.reductions, 1);
        let worths = |conn: &Conn| {
            let cc = &conn.flow.cc;
            let w_max = cc.own[sys::CUBIC_W_MAX as usize];
            let cubic = if name == "cubic" { u64::from(w_max) } else { 0 };
            let prior = u32::from(conn.flow.prr_prior_segs).into();
            let mss_bytes = u64::from(conn.mss());
            [cc.cwnd_segs.into(), cc.ssthresh_segs.into(), prior, cubic].map(|n: u64| n * mss_bytes)
        };
        for _ in 0..500 {
            let before = worths(&conn);
            let cut = rng.pick(&[500, 700, 999, 1000, 1340, 1439, 1440]);
            let sent = conn.flow.snd_nxt.wrapping_sub(conn.seq(0));
            conn.guest_sends(conn.data(sent, 2 * cut).cut(cut));
            assert_eq!(conn.mss(), cut);
            for (before, after) in before.into_iter().zip(worths(&conn)) {
                // The minimum is one segment.
                assert!(after <= before.max(cut.into()), "{name}, {cut}: {before} to {after}");
            }
        }
    }
}

/// A guest's own SACK blocks shorten its segments (RFC 6691, 3), which are full nevertheless.
#[test]
fn sack_blocks_do_not_change_the_segment_size() {
    let mut conn = Conn::established(Params::default(), 5);
    for (blocks, left_bytes) in [(1, 1428), (2, 1420), (3, 1412)] {
        let sent = conn.flow.snd_nxt.wrapping_sub(conn.seq(0));
        conn.guest_sends(conn.data(sent, 3 * left_bytes).cut(left_bytes).sack());
        assert_eq!((conn.mss(), conn.cwnd()), (1440, 10), "{blocks} blocks");
    }
    // Without blocks, or beyond what blocks can take, the segment size has changed.
    let sent = conn.flow.snd_nxt.wrapping_sub(conn.seq(0));
    conn.guest_sends(conn.data(sent, 3000).cut(1390).sack());
    assert_eq!(conn.mss(), 1390);
    conn.guest_sends(conn.data(sent + 3000, 3000).cut(1380));
    assert_eq!(conn.mss(), 1380);
}

#[test]
fn sequence_numbers_wrap_inside_a_flight() {
    let mut conn = Conn::established(Params::default(), 0xffff_f000);
    for first in (0..40).step_by(4) {
        conn.send_segs(first, first + 4);
        conn.peer_ack_segs(first + 2);
        conn.peer_ack_segs(first + 4);
    }
    assert_eq!(conn.flow.retransmissions, 0);
    assert_eq!(conn.flow.reductions, 0);
    assert_eq!(conn.flow.flight_bytes(), 0);
    assert!(conn.flow.snd_nxt < 0x1_0000, "it has wrapped");
}

#[test]
fn last_seen_follows_both_directions() {
    let mut conn = Conn::established(Params::default(), 5);
    conn.wait_us(3_000_000).send(0, 10);
    assert_eq!(conn.flow.last_seen_ms, (conn.now_us / 1000) as u32);
    conn.wait_us(2_000_000).peer_ack(10);
    assert_eq!(conn.flow.last_seen_ms, (conn.now_us / 1000) as u32);
    assert_eq!(u32::from(conn.flow.stage), sys::STAGE_ESTABLISHED);
}

#[test]
fn the_two_ends_of_the_plausible_range_are_not_confused() {
    const WINDOW_MAX: u32 = 1 << 30; // RFC 7323, 2.3
    let mut conn = Conn::established(underlay("reno"), 5);
    conn.send(WINDOW_MAX - 100, 100);
    assert_eq!(conn.flow.snd_nxt.wrapping_sub(conn.flow.snd_una), WINDOW_MAX);
    conn.send(WINDOW_MAX.wrapping_neg() - 100, 100);
    let flight_bytes = conn.flow.snd_nxt.wrapping_sub(conn.flow.snd_una);
    assert_eq!(flight_bytes, WINDOW_MAX, "old data is not new");
}
