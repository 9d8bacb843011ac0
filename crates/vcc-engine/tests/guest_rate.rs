//! The rate of all connections of a guest: however many they are and however short, together they
//! send no more than one that keeps to it.

use crate::common::*;
use vcc_engine::{GuestRate, Mode, Params};

/// 4.5 Mbit/s.
const BYTES_PER_MS: u32 = 562;
/// As in engine/guest_rate.h.
const BURST_BYTES: u64 = 65_536;

fn capped(bytes_per_ms: u32) -> Params {
    params(|p| {
        p.police = 1;
        p.guest_rate_cap_bytes_per_ms = bytes_per_ms;
    })
}

/// A guest, and what has left it.
struct Guest {
    rate: GuestRate,
    now_us: u64,
    passed_bytes: u64,
}

impl Guest {
    fn new() -> Self {
        Guest { rate: GuestRate::default(), now_us: 1_000_000, passed_bytes: 0 }
    }

    /// Sends a segment; does it pass?
    fn sends(&mut self, conn: &mut Conn, segment: Seg) -> bool {
        conn.now_us = self.now_us;
        let mut action = conn.guest_sends(segment);
        let segment = segment.at_us(self.now_us).0;
        self.rate.cap(&mut conn.flow, &conn.params, &segment, &mut action);
        if !is_dropped(&action) {
            self.passed_bytes += u64::from(segment.payload_bytes);
        }
        assert_eq!(is_dropped(&action), action.police != 0);
        !is_dropped(&action)
    }

    /// A new connection sends a first flight of ten full segments.
    fn flight(&mut self, params: Params) {
        let mut conn = Conn::established(params, 5);
        let mss_bytes = conn.mss();
        for number in 0..10 {
            let segment = conn.data(number * mss_bytes, mss_bytes);
            self.sends(&mut conn, segment);
        }
    }

    fn most_bytes(&self, bytes_per_ms: u32, segment_bytes: u64) -> u64 {
        BURST_BYTES + segment_bytes + (self.now_us / 1000 - 1000) * u64::from(bytes_per_ms)
    }
}

#[test]
fn many_short_connections_send_no_more_than_the_rate() {
    for at_a_time in [1, 8, 100] {
        let mut guest = Guest::new();
        for _ in 0..500 {
            for _ in 0..at_a_time {
                guest.flight(capped(BYTES_PER_MS));
            }
            guest.now_us += 40_000;
        }
        let most = guest.most_bytes(BYTES_PER_MS, 1460);
        assert!(guest.passed_bytes <= most, "{at_a_time}: {} of {most}", guest.passed_bytes);
        let offered = 500 * at_a_time * 10 * 1440;
        let least = (most - 100_000).min(offered);
        assert!(guest.passed_bytes >= least, "{at_a_time}: {} of {least}", guest.passed_bytes);
    }
}

#[test]
fn a_pause_saves_a_burst_and_no_more() {
    let mut guest = Guest::new();
    for pause_us in [0, 10_000_000, 3_600_000_000_000] {
        guest.now_us += pause_us;
        let before = guest.passed_bytes;
        for _ in 0..100 {
            guest.flight(capped(BYTES_PER_MS));
        }
        let burst_bytes = guest.passed_bytes - before;
        assert!((BURST_BYTES..BURST_BYTES + 1460).contains(&burst_bytes), "{burst_bytes}");
    }
    // A fast one saves what it sends in 4 ms.
    let mut guest = Guest::new();
    for _ in 0..1000 {
        guest.flight(capped(1_000_000));
    }
    assert!((4_000_000..4_001_460).contains(&guest.passed_bytes), "{}", guest.passed_bytes);
}

#[test]
fn what_a_super_segment_overdraws_is_paid_back() {
    let mut guest = Guest::new();
    let mut conn = Conn::established(capped(BYTES_PER_MS), 5);
    conn.flow.0.right_edge = conn.flow.snd_una + (1 << 20);
    let big = |conn: &Conn, number: u32| conn.data(number * 60_000, 60_000).cut(1440);
    let sent = [0, 1, 2].map(|number| {
        let segment = big(&conn, number);
        guest.sends(&mut conn, segment)
    });
    assert_eq!(sent, [true, true, false]);
    // 120,000 of 65,536 bytes.
    guest.now_us += 90_000;
    let third = big(&conn, 2);
    assert!(!guest.sends(&mut conn, third));
    guest.now_us += 10_000;
    assert!(guest.sends(&mut conn, third), "as a retransmission");
    assert_eq!((conn.flow.policed, conn.flow.drops), (2, 2));
}

#[test]
fn only_data_of_a_policed_connection_counts() {
    let mut guest = Guest::new();
    let tiny = capped(1);
    for _ in 0..100 {
        guest.flight(tiny);
    }
    let mut conn = Conn::established(tiny, 5);
    for passes in [conn.data(0, 0), conn.data(0, 0).fin(), conn.data(1, 0).rst()] {
        assert!(guest.sends(&mut conn, passes), "no data");
    }
    let data = conn.data(0, 1000);
    assert!(!guest.sends(&mut conn, data));
    let unpoliced = params(|p| p.guest_rate_cap_bytes_per_ms = 1);
    let mut shadow = tiny;
    shadow.0.mode = Mode::Shadow.number();
    for params in [Params::default(), unpoliced, shadow] {
        let mut conn = Conn::established(params, 5);
        let data = conn.data(0, 1000);
        assert!(guest.sends(&mut conn, data));
    }
}

/// Each rule's bytes cost the time that they take at its rate.
#[test]
fn rules_with_different_rates_share_the_time() {
    let mut guest = Guest::new();
    let [slow, fast] = [capped(100), capped(10_000)];
    for _ in 0..100 {
        guest.flight(slow);
    }
    // The debt of the slow one is more than the burst of the fast one.
    let before = guest.passed_bytes;
    guest.flight(fast);
    assert_eq!(guest.passed_bytes, before);
    guest.now_us += 700_000;
    guest.flight(fast);
    assert_eq!(guest.passed_bytes, before + 14_400);
}
