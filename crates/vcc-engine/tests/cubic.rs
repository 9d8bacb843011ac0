//! CUBIC (RFC 9438): the engine's integers against the RFC's formulas in floating point.

use crate::common::*;
use vcc_engine::{Params, sys};

const C: f64 = 0.4;
const BETA: f64 = 0.7;

fn cubic(initial_window_segs: u32) -> Params {
    let mut params = underlay("cubic");
    params.0.initial_window_segs = initial_window_segs;
    params.0.prr = 0;
    params
}

fn own(conn: &Conn, place: u32) -> u32 {
    conn.flow.cc.own[place as usize]
}

fn k_s(w_max: f64, cwnd: f64) -> f64 {
    ((w_max - cwnd).max(0.0) / C).cbrt()
}

/// RFC 9438, 4.2, figure 1.
fn w_cubic(w_max: f64, cwnd_epoch: f64, t_s: f64) -> f64 {
    C * (t_s - k_s(w_max, cwnd_epoch)).powi(3) + w_max
}

/// The RFC's sender, per ACK.
struct Model {
    cwnd: f64,
    w_max: f64,
    /// cwnd before the last reduction.
    prior: f64,
    /// Start of this congestion avoidance, and cwnd then.
    epoch: Option<(f64, f64)>,
    w_est: f64,
}

impl Model {
    fn after_loss(cwnd: f64, w_max_before: f64) -> Self {
        let w_max = if cwnd < w_max_before { cwnd * (1.0 + BETA) / 2.0 } else { cwnd };
        Model { cwnd: (cwnd * BETA).floor(), w_max, prior: cwnd, epoch: None, w_est: 0.0 }
    }

    fn on_ack(&mut self, now_s: f64, rtt_s: f64, acked: f64) {
        if self.epoch.is_none() {
            self.epoch = Some((now_s, self.cwnd));
            self.w_est = self.cwnd;
            self.w_max = self.w_max.max(self.cwnd);
        }
        let (since_s, from) = self.epoch.unwrap();
        let t_s = now_s - since_s;
        let w_at = |t_s| w_cubic(self.w_max, from, t_s);
        // RFC 9438, 4.3: alpha is below 1 until W_est reaches cwnd_prior.
        let alpha = if self.w_est < self.prior { 3.0 * (1.0 - BETA) / (1.0 + BETA) } else { 1.0 };
        self.w_est += alpha * acked / self.cwnd;
        if w_at(t_s) < self.w_est {
            self.cwnd = self.cwnd.max(self.w_est);
        } else {
            let target = w_at(t_s + rtt_s).clamp(self.cwnd, 1.5 * self.cwnd);
            self.cwnd += acked * (target - self.cwnd) / self.cwnd;
        }
    }
}

/// A guest that keeps its window full over a path of `rtt_us`, with an ACK per two segments.
struct Stream {
    conn: Conn,
    rtt_us: f64,
    clock_us: f64,
    sent: u32,
    acked: u32,
}

impl Stream {
    fn new(params: Params, rtt_us: f64) -> Self {
        let conn = Conn::established(params, 5).without_sack();
        let clock_us = conn.now_us as f64;
        Stream { conn, rtt_us, clock_us, sent: 0, acked: 0 }
    }

    fn seconds(&self) -> f64 {
        self.conn.now_us as f64 / 1e6
    }

    fn fill(&mut self) {
        let cwnd = self.conn.cwnd();
        if self.sent - self.acked < cwnd {
            let to = self.acked + cwnd;
            self.conn.send_segs(self.sent, to);
            self.sent = to;
        }
    }

    fn advance(&mut self, us: f64) {
        self.clock_us += us;
        self.conn.now_us = self.clock_us as u64;
    }

    /// The next ACK, at its time. Returns the segments that it acknowledges.
    fn ack(&mut self) -> u32 {
        self.fill();
        let flight = self.sent - self.acked;
        let segs = flight.min(2);
        self.advance(self.rtt_us * f64::from(segs) / f64::from(flight));
        self.acked += segs;
        self.conn.peer_ack_segs(self.acked);
        segs
    }

    /// Three duplicate ACKs, then the whole flight is acknowledged.
    fn lose(&mut self) {
        self.fill();
        let reductions = self.conn.flow.reductions;
        for _ in 0..4 {
            self.conn.peer_ack_segs(self.acked);
        }
        assert_eq!(self.conn.flow.reductions, reductions + 1);
        self.advance(self.rtt_us);
        self.acked = self.sent;
        self.conn.peer_ack_segs(self.acked);
        // Data beyond `recover` ends the reduction.
        self.conn.send_segs(self.sent, self.sent + 1);
        self.sent += 1;
    }
}

/// Within 2 percent, or a segment plus the integers' truncation.
fn close(cwnd: u32, wanted: f64) -> bool {
    let error = (f64::from(cwnd) - wanted).abs();
    error <= (0.02 * wanted).max(2.0)
}

#[test]
fn the_curve_is_that_of_the_rfc() {
    for w_max in [20u32, 60, 100, 400, 1000] {
        for rtt_us in [1_000.0, 10_000.0, 50_000.0, 100_000.0] {
            // These combinations take too many ACKs, and the curve does not depend on so short an
            // RTT.
            if w_max > 100 && rtt_us < 10_000.0 {
                continue;
            }
            let mut stream = Stream::new(cubic(w_max), rtt_us);
            // RTT samples before the loss.
            stream.conn.flow.0.cc.ssthresh_segs = 2;
            stream.lose();
            let mut model = Model::after_loss(w_max.into(), 0.0);
            assert_eq!(f64::from(stream.conn.flow.cc.ssthresh_segs), model.cwnd);
            let start_s = stream.seconds();
            let two_k_s = 2.0 * k_s(w_max.into(), model.cwnd);
            let lasts_s = two_k_s.min(1000.0 * rtt_us / 1e6);
            while stream.seconds() < start_s + lasts_s {
                let segs = stream.ack();
                model.on_ack(stream.seconds(), rtt_us / 1e6, segs.into());
                assert!(
                    close(stream.conn.cwnd(), model.cwnd),
                    "w_max {w_max}, RTT {rtt_us} us, after {} s: {} instead of {}",
                    stream.seconds() - start_s,
                    stream.conn.cwnd(),
                    model.cwnd
                );
            }
            assert!(stream.conn.cwnd() >= w_max || lasts_s < two_k_s, "above W_max after two K");
        }
    }
}

#[test]
fn at_k_the_window_is_back() {
    // In the cubic region: at a long RTT, Reno is far below.
    for w_max in [200u32, 500, 1000] {
        let mut stream = Stream::new(cubic(w_max), 100_000.0);
        stream.lose();
        let from = f64::from(stream.conn.flow.cc.ssthresh_segs);
        stream.ack();
        let start_s = stream.seconds();
        let k = k_s(w_max.into(), from);
        let learned_ms = own(&stream.conn, sys::CUBIC_K_MS);
        assert!((f64::from(learned_ms) / 1000.0 - k).abs() < 0.002, "{learned_ms} ms for {k} s");
        for part in 1..=20 {
            let t_s = k * f64::from(part) / 10.0;
            while stream.seconds() < start_s + t_s {
                stream.ack();
            }
            let wanted = w_cubic(w_max.into(), from, t_s);
            let cwnd = stream.conn.cwnd();
            assert!(close(cwnd, wanted), "w_max {w_max} at {part}/10 K: {cwnd}, not {wanted}");
        }
    }
}

#[test]
fn it_is_never_below_reno() {
    // RFC 9438, 4.3: at a datacenter's RTT, the cubic curve is flat.
    for w_max in [10u32, 30, 100] {
        let mut stream = Stream::new(cubic(w_max), 500.0);
        stream.lose();
        let from = f64::from(stream.conn.flow.cc.ssthresh_segs);
        let mut estimate = from;
        for _ in 0..200 {
            let mut rounds = 0.0;
            while rounds < 1.0 {
                let segs = f64::from(stream.ack());
                rounds += segs / f64::from(stream.conn.cwnd());
            }
            estimate += if estimate < f64::from(w_max) { 0.529 } else { 1.0 };
            let cwnd = f64::from(stream.conn.cwnd());
            assert!(cwnd >= estimate - 2.0 - 0.02 * estimate, "{cwnd}, where Reno has {estimate}");
            assert!(cwnd <= estimate + 2.0 + 0.02 * estimate, "{cwnd}, where Reno has {estimate}");
        }
    }
}

#[test]
fn a_loss_leaves_seven_tenths() {
    for (cwnd, left) in [(10, 7), (11, 7), (100, 70), (1000, 700), (3, 2), (2, 2)] {
        let mut stream = Stream::new(cubic(cwnd.max(5)), 1000.0);
        stream.conn.flow.0.cc.cwnd_segs = cwnd;
        stream.conn.send_segs(0, 5);
        stream.sent = 5;
        stream.lose();
        assert_eq!(stream.conn.flow.cc.ssthresh_segs, left, "of {cwnd}");
        stream.ack();
        assert_eq!(stream.conn.cwnd(), left);
    }
}

#[test]
fn a_window_below_w_max_converges_fast() {
    // Fast convergence (RFC 9438, 4.7).
    let mut stream = Stream::new(cubic(1000), 20_000.0);
    stream.lose();
    assert_eq!(own(&stream.conn, sys::CUBIC_W_MAX), 1000 * sys::CUBIC_UNIT);
    for _ in 0..800 {
        stream.ack();
    }
    let cwnd = stream.conn.cwnd();
    assert!(cwnd < 1000);
    stream.lose();
    let w_max = f64::from(own(&stream.conn, sys::CUBIC_W_MAX)) / f64::from(sys::CUBIC_UNIT);
    assert!((w_max / (f64::from(cwnd) * (1.0 + BETA) / 2.0) - 1.0).abs() < 0.002, "{w_max}");
    // Above the last W_max, cwnd becomes W_max.
    stream.conn.flow.0.cc.cwnd_segs = 2000;
    stream.sent = stream.acked + 1;
    stream.ack();
    stream.conn.flow.0.cc.cwnd_segs = 2000;
    stream.lose();
    assert_eq!(own(&stream.conn, sys::CUBIC_W_MAX), 2000 * sys::CUBIC_UNIT);
}

#[test]
fn w_est_grows_slowly_up_to_cwnd_prior() {
    // RFC 9438, 4.3: up to cwnd_prior, not only up to W_max of fast convergence.
    let mut stream = Stream::new(cubic(100), 200.0);
    stream.lose();
    stream.ack();
    stream.conn.flow.0.cc.cwnd_segs = 90;
    stream.lose();
    let mut model = Model::after_loss(90.0, 100.0);
    for _ in 0..4000 {
        let segs = stream.ack();
        model.on_ack(stream.seconds(), 200e-6, segs.into());
        let cwnd = stream.conn.cwnd();
        assert!(close(cwnd, model.cwnd), "{cwnd} instead of {}", model.cwnd);
    }
    assert!(stream.conn.cwnd() > 95);
}

#[test]
fn a_timeout_resets_w_max() {
    // RFC 9438, 4.8: slow start to 0.7, then the convex region with a K of 0.
    let mut stream = Stream::new(cubic(1000), 100_000.0);
    stream.fill();
    stream.advance(2e6);
    stream.conn.deadline();
    assert_eq!((stream.conn.cwnd(), stream.conn.flow.cc.ssthresh_segs), (1, 700));
    stream.acked = stream.sent;
    stream.conn.peer_ack_segs(stream.acked);
    while stream.conn.cwnd() < 700 {
        stream.ack();
    }
    stream.ack();
    assert_eq!(own(&stream.conn, sys::CUBIC_K_MS), 0);
    assert!(own(&stream.conn, sys::CUBIC_W_MAX) <= 702 * sys::CUBIC_UNIT);
}

#[test]
fn slow_start_doubles() {
    let mut stream = Stream::new(cubic(10), 10_000.0);
    for round in 1..6 {
        let end = stream.acked + stream.conn.cwnd();
        while stream.acked < end {
            stream.ack();
        }
        assert_eq!(stream.conn.cwnd(), 10 << round);
    }
}

#[test]
fn an_unused_window_does_not_grow() {
    let mut conn = Conn::established(cubic(100), 5).without_sack();
    conn.flow.0.cc.ssthresh_segs = 2;
    let mss_bytes = conn.mss();
    for number in 0..1000 {
        conn.send(number * mss_bytes, mss_bytes);
        conn.wait_us(50_000);
        conn.peer_ack_segs(number + 1);
        assert_eq!(conn.cwnd(), 100);
    }
    // The unused time does not count afterwards either.
    let mut stream = Stream::new(cubic(1000), 10_000.0);
    stream.lose();
    for _ in 0..100 {
        stream.ack();
    }
    let number = stream.sent;
    stream.acked = number;
    stream.conn.peer_ack_segs(number);
    let before = stream.conn.cwnd();
    for number in number..number + 50 {
        stream.conn.send_segs(number, number + 1);
        stream.advance(10_000.0);
        stream.conn.peer_ack_segs(number + 1);
        stream.advance(190_000.0);
    }
    (stream.sent, stream.acked) = (number + 50, number + 50);
    assert!(stream.conn.cwnd() <= before + 1);
    for _ in 0..before {
        stream.ack();
    }
    let grown = f64::from(stream.conn.cwnd()) - f64::from(before);
    assert!(grown < 0.02 * f64::from(before), "by {grown} of {before} in two round trips");
}

#[test]
fn the_first_ack_of_an_epoch_is_no_leap() {
    // CPU clocks differ, and time is in whole microseconds.
    for skew_us in [0u64, 1, 2, 500] {
        for odd in [0, 1] {
            let mut stream = Stream::new(cubic(1000), 100_000.0);
            stream.lose();
            stream.conn.now_us = (stream.conn.now_us & !1) + odd;
            for _ in 0..20 {
                stream.acked += 2;
                stream.conn.send_segs(stream.sent, stream.acked + 700);
                stream.sent = stream.acked + 700;
                stream.conn.peer_ack_segs(stream.acked);
                stream.conn.now_us -= skew_us;
            }
            // 40 of 700 segments acknowledged, with a target a few segments away.
            let cwnd = stream.conn.cwnd();
            assert!(cwnd <= 701, "{cwnd} at a skew of {skew_us} us");
        }
    }
}

#[test]
fn extremes_overflow_nothing() {
    // Laws are checked: a window beyond its limits would panic.
    let most = sys::CWND_MAX_SEGS;
    for cwnd in [1u32, 2, most - 1, most] {
        for w_max in [0u32, 1, 1000, most] {
            for step_us in [0u64, 1, 1000, 10_000_000, 2_000_000_000, 4_200_000_000] {
                for mss in [13u32, 1440, 65_535] {
                    let mut conn = Conn::established(cubic(10), 5).without_sack();
                    conn.flow.0.mss_bytes = mss as u16;
                    conn.flow.0.cc.ssthresh_segs = 2;
                    conn.flow.0.cc.cwnd_segs = cwnd;
                    conn.flow.0.cc.own[sys::CUBIC_W_MAX as usize] = w_max * sys::CUBIC_UNIT;
                    conn.flow.0.srtt_us8 = 8 * 30_000_000;
                    let mut before = cwnd;
                    for _ in 0..50 {
                        // A guest that uses its whole window, with ACKs of any size.
                        let flight = conn.flow.cc.cwnd_segs * mss;
                        conn.flow.0.snd_nxt = conn.flow.snd_una.wrapping_add(flight.min(1 << 30));
                        conn.flow.0.flags |= sys::FLOW_WINDOW_LIMITED;
                        conn.flow.0.round_end = conn.flow.snd_nxt.wrapping_add(1 << 20);
                        conn.now_us += step_us;
                        let ack = conn.flow.snd_nxt;
                        conn.guest_gets(seg().seq(conn.peer_seq(0)).ack(ack).win(PEER_WINDOW));
                        let cwnd = conn.cwnd();
                        assert!(cwnd >= before && cwnd <= most, "from {before} to {cwnd}");
                        assert!(cwnd <= before + before / 2 + 1, "from {before} to {cwnd}");
                        before = cwnd;
                    }
                }
            }
        }
    }
}
