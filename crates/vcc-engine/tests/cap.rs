//! Window caps (AC/DC, 3.4): in bytes, and by rate.

use crate::common::*;
use vcc_engine::{Mode, sys};

/// The largest window shown to a greedy guest, and its connection at the end.
fn run(change: impl FnOnce(&mut sys::vcc_params), rtt_us: u64, rounds: u32) -> (u32, Conn) {
    let mut conn = Conn::established(params(change), 5);
    let mss_bytes = conn.mss();
    let (mut sent, mut acked, mut window) = (0, 0, 2);
    let mut largest = 0;
    for round in 0..rounds {
        while sent < acked + window {
            conn.send(sent * mss_bytes, mss_bytes);
            sent += 1;
        }
        conn.wait_us(rtt_us);
        while acked < sent {
            acked += 1;
            let shown = conn.peer_ack_segs(acked);
            assert_eq!(conn.shown_bytes(&shown) % mss_bytes, 0, "whole segments");
            window = conn.shown_bytes(&shown) / mss_bytes;
            // Before the first RTT sample, a rate limits nothing.
            if round > 0 {
                largest = largest.max(conn.shown_bytes(&shown));
            }
        }
    }
    (largest, conn)
}

#[test]
fn a_cap_in_bytes_is_kept_in_whole_segments() {
    let mss_bytes = Conn::established(params(|_| ()), 5).mss();
    for (cap_bytes, segs) in [
        (1, 1),
        (mss_bytes - 1, 1),
        (mss_bytes, 1),
        (2 * mss_bytes - 1, 1),
        (2 * mss_bytes, 2),
        (20 * mss_bytes + 77, 20),
        (100_000, 100_000 / mss_bytes),
    ] {
        let (largest, conn) = run(|p| p.window_cap_bytes = cap_bytes, 1000, 60);
        assert_eq!(largest, segs.max(1) * mss_bytes, "a cap of {cap_bytes} bytes");
        assert!(largest <= cap_bytes.max(mss_bytes));
        // An unused cwnd does not grow, except by the bytes of one ACK.
        assert!(conn.cwnd() <= segs.max(10) + 1, "cwnd {} for {segs}", conn.cwnd());
    }
}

#[test]
fn without_a_cap_the_window_is_unlimited() {
    let (largest, conn) = run(|_| (), 1000, 8);
    assert_eq!(largest, conn.cwnd() * conn.mss());
    assert!(largest > 500_000);
}

#[test]
fn a_cap_by_rate_follows_the_rtt() {
    // 1250 bytes/ms are 10 Mbit/s.
    for (rate, rtt_us) in [(1250, 20_000), (1250, 100_000), (12_500, 4000), (125_000, 1000)] {
        let (largest, conn) = run(|p| p.rate_cap_bytes_per_ms = rate, rtt_us, 60);
        let by_rate = u64::from(rate) * rtt_us / 1000;
        let wanted = by_rate as u32 / conn.mss() * conn.mss();
        assert_eq!(largest, wanted.max(conn.mss()), "{rate} bytes/ms at {rtt_us} us");
    }
    let (largest, conn) = run(|p| p.rate_cap_bytes_per_ms = 1, 100, 20);
    assert_eq!(largest, conn.mss(), "one segment is always allowed");
}

#[test]
fn the_smaller_cap_decides() {
    let (largest, conn) = run(
        |p| {
            p.window_cap_bytes = 30_000;
            p.rate_cap_bytes_per_ms = 1250;
        },
        20_000,
        40,
    );
    assert_eq!(largest, 25_000 / conn.mss() * conn.mss());
    let (largest, conn) = run(
        |p| {
            p.window_cap_bytes = 30_000;
            p.rate_cap_bytes_per_ms = u32::MAX;
        },
        20_000,
        40,
    );
    assert_eq!(largest, 30_000 / conn.mss() * conn.mss());
}

#[test]
fn a_later_cap_does_not_move_the_right_edge() {
    // Law 2: the right edge stays, and the window shrinks as ACKs arrive.
    let mut conn = Conn::established(params(|_| ()), 5);
    let mss_bytes = conn.mss();
    conn.send_segs(0, 10);
    let shown = conn.peer_ack_segs(4);
    let edge = conn.shown_edge(4 * mss_bytes, &shown);
    conn.params.0.window_cap_bytes = 2 * mss_bytes;
    for segs in 5..=10 {
        let shown = conn.peer_ack_segs(segs);
        assert_eq!(conn.shown_edge(segs * mss_bytes, &shown), edge);
    }
    conn.send_segs(10, edge / mss_bytes);
    for segs in 11..=edge / mss_bytes {
        let shown = conn.peer_ack_segs(segs);
        let at_most = (edge - segs * mss_bytes).max(2 * mss_bytes);
        assert_eq!(conn.shown_bytes(&shown), at_most);
    }
}

#[test]
fn a_cap_is_kept_by_windows_that_are_rounded_up() {
    // A listener with an MTU of 1450 and without timestamps: its segments are no multiple of the
    // unit.
    let answer = linux_syn().mss(1410).without(sys::OPT_TIMESTAMPS);
    for cap_bytes in (1410..60_000).step_by(7) {
        let params = params(|p| {
            p.window_cap_bytes = cap_bytes;
            p.initial_window_segs = 100;
        });
        let mut conn = Conn::accepted(params, 5, linux_syn(), answer);
        conn.flow.0.right_edge = conn.flow.snd_una;
        let mss_bytes = conn.mss();
        conn.send_segs(0, 1);
        let shown = conn.peer_ack_segs(1);
        let shown_bytes = conn.shown_bytes(&shown);
        assert_eq!(conn.flow.wscale_shown, 5);
        // One segment is always allowed.
        assert!(shown_bytes <= cap_bytes.max(mss_bytes + 31), "{shown_bytes} of {cap_bytes}");
        assert!(shown_bytes + mss_bytes + 32 > cap_bytes, "{shown_bytes} of {cap_bytes}");
    }
}

/// The window of the SYN-ACK, which is unscaled, by a cap; and how much of it a greedy guest uses.
fn first_flight(change: impl FnOnce(&mut sys::vcc_params), rtt_us: u64) -> (u32, u32) {
    let mut conn = Conn::new(params(change), 5);
    conn.guest_syn(linux_syn());
    conn.wait_us(rtt_us);
    let shown = conn.peer_synack(linux_syn());
    conn.guest_acks(0);
    let mss_bytes = conn.mss();
    let passed = (0..60).filter(|n| !is_dropped(&conn.send(n * mss_bytes, mss_bytes))).count();
    (u32::from(shown.window), passed as u32 * mss_bytes)
}

#[test]
fn a_cap_binds_the_first_flight() {
    let mss_bytes = Conn::established(params(|_| ()), 5).mss();
    let initial_bytes = 10 * mss_bytes;
    // Without a cap a SYN's window stays.
    assert_eq!(first_flight(|_| (), 100).0, 64_240);
    for (cap_bytes, wanted) in [
        (1, 2 * mss_bytes),
        (5 * mss_bytes - 1, 4 * mss_bytes),
        (16 << 10, initial_bytes),
        (1 << 20, initial_bytes),
    ] {
        let cap = |p: &mut sys::vcc_params| p.window_cap_bytes = cap_bytes;
        assert_eq!(first_flight(cap, 100).0, wanted, "a cap of {cap_bytes}");
        let policed = first_flight(
            |p| {
                p.window_cap_bytes = cap_bytes;
                p.police = 1;
            },
            100,
        );
        assert_eq!(policed, (wanted, wanted), "and policed");
    }
    // 1250 bytes/ms for 4 ms: the handshake is the first sample of the RTT.
    let by_rate = |p: &mut sys::vcc_params| p.rate_cap_bytes_per_ms = 1250;
    assert_eq!(first_flight(by_rate, 4000).0, 5000 / mss_bytes * mss_bytes);
    // A floor takes precedence.
    let floor = |p: &mut sys::vcc_params| (p.rate_cap_bytes_per_ms, p.window_floor_segs) = (1, 5);
    assert_eq!(first_flight(floor, 4000).0, 5 * mss_bytes);
}

#[test]
fn a_cap_raises_no_syn_acks_window_and_changes_none_in_shadow_mode() {
    let syn_ack = |params| {
        let mut conn = Conn::new(params, 5);
        conn.guest_syn(linux_syn());
        let small = linux_syn().win(1000);
        conn.peer_synack(small).window
    };
    let capped = params(|p| (p.window_cap_bytes, p.police) = (16 << 10, 1));
    assert_eq!(syn_ack(capped), 1000);
    let shadow = params(|p| (p.window_cap_bytes, p.mode) = (1, Mode::Shadow.number()));
    let mut conn = Conn::new(shadow, 5);
    assert_eq!(conn.peer_syn(linux_syn()).window, 64_240);
    assert_eq!(syn_ack(shadow), 1000);
}
