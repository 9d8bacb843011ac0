//! Usual segments with the time of the kernel's last tick: what is timed is timed exactly, and what a
//! guest takes to answer is found as well.

use crate::common::*;
use vcc_engine::{Action, Params, Underlay};

const TICK_US: u64 = 4_000;

/// One connection with the exact time, and the same with that of ticks.
struct Pair {
    exact: Conn,
    ticks: Conn,
    /// Segments with the time of the last tick, and others.
    at_tick: u32,
    exactly: u32,
    /// Segments that leave otherwise, or give another sample of the RTT.
    differ: u32,
}

impl Pair {
    fn established(params: Params) -> Self {
        let exact = Conn::established(params, 5);
        let ticks = Conn { tick_us: TICK_US, ..exact.clone() };
        Self { exact, ticks, at_tick: 0, exactly: 0, differ: 0 }
    }

    fn pass(&mut self, segment: Seg, to_guest: bool) {
        match self.ticks.stamp(segment, to_guest).0.at_tick {
            0 => self.exactly += 1,
            _ => self.at_tick += 1,
        }
        let pass = |conn: &mut Conn| match to_guest {
            true => conn.guest_gets(segment),
            false => conn.guest_sends(segment),
        };
        let (by_exact, by_ticks) = (pass(&mut self.exact), pass(&mut self.ticks));
        let seen = |it: &Action| (it.window, it.flags, it.fabric_us);
        self.differ += u32::from(seen(&by_exact) != seen(&by_ticks));
    }

    fn wait_us(&mut self, us: u64) {
        self.exact.wait_us(us);
        self.ticks.wait_us(us);
    }

    /// A bulk transfer: one ACK a `gap_us`, which the guest answers by what its window admits, but
    /// for one in a hundred, before which it is off its core for `stall_us`.
    fn run(&mut self, segs: u32, gap_us: u64, stall_us: u64) {
        let mss_bytes = self.exact.mss();
        let (mut sent, mut acked) = (0, 0);
        while acked < segs {
            while sent < acked + self.exact.cwnd().min(64) {
                self.pass(self.exact.data(sent * mss_bytes, mss_bytes), false);
                sent += 1;
            }
            self.wait_us(gap_us);
            acked += 1;
            self.pass(self.exact.ack(acked * mss_bytes), true);
            self.wait_us(if acked % 100 == 99 { stall_us } else { 2 });
        }
    }
}

fn under(underlay: Underlay) -> Params {
    params(|p| p.underlay = underlay.number())
}

#[test]
fn windows_and_samples_of_the_rtt_are_the_same() {
    for underlay in Underlay::all().filter(|it| it.controls()) {
        let mut it = Pair::established(under(underlay));
        it.run(5_000, 30, 2);
        assert_eq!(it.differ, 0, "{underlay:?}");
        assert_eq!(it.exact.flow.srtt_us8, it.ticks.flow.srtt_us8);
        assert_eq!(it.exact.cwnd(), it.ticks.cwnd());
        // Each round trip has two ends.
        let segs = it.exact.cwnd().min(64);
        assert!(
            it.at_tick * 4 > it.exactly * segs,
            "{underlay:?}: {} and {}",
            it.at_tick,
            it.exactly
        );
    }
}

#[test]
fn a_stalled_guest_is_found() {
    for stall_us in [300, 1_000, 3_000, 7_000, 31_000] {
        let mut it = Pair::established(underlay("dctcp"));
        it.run(20_000, 30, stall_us);
        let [exact_us, ticks_us] = [it.exact, it.ticks].map(|conn| conn.flow.guest_worst_us);
        assert_eq!(u64::from(exact_us), stall_us);
        let least_us = if stall_us < 2 * TICK_US { stall_us } else { stall_us - TICK_US };
        let most_us = stall_us + TICK_US;
        assert!((least_us..=most_us).contains(&ticks_us.into()), "{stall_us}: {ticks_us}");
    }
}

#[test]
fn the_first_wait_of_each_tick_is_timed() {
    let mut conn = Conn { tick_us: TICK_US, ..Conn::established(params(|_| ()), 5) };
    let mss_bytes = conn.mss();
    conn.now_us -= conn.now_us % TICK_US;
    let mut samples = Vec::new();
    for number in 0..200 {
        for seg in [2 * number, 2 * number + 1] {
            let data = conn.ack(0).seq(conn.peer_seq(seg * mss_bytes)).ack(conn.flow.snd_nxt);
            conn.guest_gets(data.len(mss_bytes));
        }
        conn.wait_us(70);
        samples.push(conn.guest_acks((2 * number + 2) * mss_bytes).guest_us);
        // Some waits begin in one tick and end in the next.
        conn.wait_us(357);
    }
    let timed = samples.iter().filter(|&&it| it != 0).count();
    assert!(samples.iter().all(|it| [0, 70].contains(it)), "{samples:?}");
    // Before header prediction takes them all, the first are timed as well.
    assert!((20..=30).contains(&timed), "{timed}");
}

#[test]
fn what_the_guest_does_not_answer_is_timed_from_the_next_segment() {
    let mut conn = Conn { tick_us: TICK_US, ..Conn::established(params(|_| ()), 5) };
    let mss_bytes = conn.mss();
    conn.now_us -= conn.now_us % TICK_US;
    let peer_sends = |conn: &mut Conn, seg: u32| {
        let data = conn.ack(0).seq(conn.peer_seq(seg * mss_bytes)).ack(conn.flow.snd_nxt);
        conn.guest_gets(data.len(mss_bytes));
    };
    for number in 0..4 {
        peer_sends(&mut conn, 2 * number);
        peer_sends(&mut conn, 2 * number + 1);
        conn.wait_us(50).guest_acks((2 * number + 2) * mss_bytes);
    }
    for seg in 8..11 {
        conn.wait_us(10);
        peer_sends(&mut conn, seg);
    }
    assert_eq!(conn.wait_us(1_500).guest_acks(11 * mss_bytes).guest_us, 1_500);
    // Without one, and after many ticks, by the tick.
    peer_sends(&mut conn, 11);
    peer_sends(&mut conn, 12);
    let wait_us = conn.wait_us(31_000).guest_acks(13 * mss_bytes).guest_us;
    assert!((31_000..31_000 + TICK_US as u32).contains(&wait_us), "{wait_us}");
}

#[test]
fn short_timers_need_the_exact_time() {
    for (rto_min_us, bears_ticks) in [(200_000, true), (160_000, true), (20_000, false)] {
        let mut conn = Conn::established(params(|p| p.rto_min_us = rto_min_us), 5);
        conn.tick_us = TICK_US;
        let mss_bytes = conn.mss();
        conn.send(0, mss_bytes);
        let data = conn.stamp(conn.data(mss_bytes, mss_bytes), false).0;
        assert!(conn.flow.is_expected(&conn.params, &data, false));
        assert_eq!(data.at_tick != 0, bears_ticks, "{rto_min_us}");
    }
}
