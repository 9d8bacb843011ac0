//! DCTCP (RFC 8257) and DCTCP with priorities (AC/DC, equation 1), against a model of their own.

use crate::common::sim::Rng;
use crate::common::*;
use vcc_engine::{Params, sys};

const COUNTER_MASK: u32 = 0xff_ffff;

/// Segments to take from `cwnd`, of which `share` of 2^21 is to go: as Linux rounds, but below its
/// floor of two, where the nearest number counts.
fn cut(cwnd: u64, share: u64) -> u64 {
    let half = if cwnd <= 2 { 1 << 20 } else { 0 };
    (cwnd * share + half) >> 21
}

fn alpha(conn: &Conn) -> u32 {
    conn.flow.cc.own[sys::DCTCP_ALPHA as usize]
}

/// How the marks of a test's traffic are told to the sender half.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Told {
    /// By a vcc at the far end: cumulative bytes.
    Reports,
    /// By a native DCTCP receiver: ECE on the ACKs of what was marked, and on no others.
    DctcpEcho,
    /// By a classic receiver: ECE until CWR.
    ClassicEcho,
}

fn conn(params: Params, isn: u32, told: Told) -> Conn {
    match told {
        Told::Reports => Conn::to_vcc(params, isn),
        Told::DctcpEcho => Conn::opened(params, isn, linux_syn(), linux_syn().ect0()),
        Told::ClassicEcho => Conn::established(params, isn),
    }
}

/// The far end, as far as it tells of marks.
struct Far {
    told: Told,
    counters: (u32, u32),
}

impl Far {
    fn new(told: Told) -> Self {
        Far { told, counters: (1, 0) }
    }

    fn ack(&mut self, ack: Seg, unmarked_bytes: u32, marked_bytes: u32) -> Seg {
        self.counters.0 = (self.counters.0 + unmarked_bytes) & COUNTER_MASK;
        self.counters.1 = (self.counters.1 + marked_bytes) & COUNTER_MASK;
        // DCTCP's pure ACKs are ECT as well.
        let ack = if self.told == Told::DctcpEcho { ack.ect0() } else { ack };
        match self.told {
            Told::Reports => ack.pack(self.counters.0, self.counters.1),
            _ if marked_bytes > 0 => ack.ece(),
            _ => ack,
        }
    }
}

/// DCTCP as Linux has it (tcp_dctcp.c), without PRR: written from that and from RFC 8257, 3.3, in
/// numbers of whole segments.
struct Model {
    cwnd: u64,
    ssthresh: u64,
    alpha: u64,
    window_end: u64,
    delivered: u64,
    delivered_ce: u64,
    high_seq: Option<u64>,
    credit: u64,
    floor: u64,
    /// cut(cwnd, alpha of 1024)
    cut: Box<dyn Fn(u64, u64) -> u64>,
}

impl Model {
    fn new(floor: u64, cut: impl Fn(u64, u64) -> u64 + 'static) -> Self {
        Model {
            cwnd: 10,
            ssthresh: u64::MAX,
            alpha: 1024,
            window_end: 0,
            delivered: 0,
            delivered_ce: 0,
            high_seq: None,
            credit: 0,
            floor,
            cut: Box::new(cut),
        }
    }

    fn linux(floor: u64) -> Self {
        Self::new(floor, |cwnd, alpha| cut(cwnd, alpha << 10))
    }

    /// `acked` segments more up to `una`, of which `marked` were; `nxt` have been sent.
    fn on_ack(&mut self, una: u64, nxt: u64, acked: u64, marked: u64) {
        if self.high_seq.is_some_and(|high| una > high) {
            self.high_seq = None;
            self.cwnd = self.ssthresh;
            self.credit = 0;
        }
        self.delivered += acked;
        self.delivered_ce += marked;
        if una >= self.window_end {
            let decay = self.alpha >> 4;
            self.alpha -= if decay == 0 { self.alpha } else { decay };
            self.alpha += (self.delivered_ce << (10 - 4)) / self.delivered.max(1);
            self.alpha = self.alpha.min(1024);
            (self.delivered, self.delivered_ce) = (0, 0);
            self.window_end = nxt;
        }
        if marked > 0 && self.high_seq.is_none() {
            self.ssthresh = (self.cwnd - (self.cut)(self.cwnd, self.alpha)).max(self.floor);
            self.cwnd = self.cwnd.min(self.ssthresh);
            self.credit = 0;
            self.high_seq = Some(nxt);
        } else if self.high_seq.is_none() {
            self.grow(acked);
        }
    }

    fn grow(&mut self, acked: u64) {
        self.credit += acked;
        if self.cwnd < self.ssthresh {
            let grow = self.credit.min(self.ssthresh - self.cwnd);
            self.credit = 0;
            self.cwnd += grow;
        } else if self.credit >= self.cwnd {
            self.credit -= self.cwnd;
            self.cwnd += 1;
        }
    }
}

/// Runs random marks through the engine and the model, which must agree at every ACK. Returns the
/// sum of the windows.
fn compare(params: Params, told: Told, seed: u64, model: &mut Model) -> u64 {
    let mut cwnds = 0;
    let mut rng = Rng::new(seed);
    let isn = rng.pick(&ISNS);
    let mut conn = conn(params, isn, told);
    let mut far = Far::new(told);
    let mss_bytes = conn.mss();
    let mut mark_permille = 0;
    let (mut sent, mut acked) = (0u32, 0u32);
    for step in 0..1500 {
        if step % 100 == 0 {
            mark_permille = rng.pick(&[0, 5, 50, 200, 500, 1000]);
        }
        while sent - acked < conn.cwnd() && sent - acked < 700 {
            conn.send(sent * mss_bytes, mss_bytes);
            sent += 1;
        }
        if sent == acked {
            continue;
        }
        // A DCTCP receiver does not mix marked and unmarked in one ACK (RFC 8257, 3.2).
        let segs = rng.range(1, u64::from(sent - acked).min(3) + 1) as u32;
        let marked = match told {
            Told::Reports => (0..segs).filter(|_| rng.chance(mark_permille)).count() as u32,
            _ => segs * u32::from(rng.chance(mark_permille)),
        };
        acked += segs;
        let ack = conn.ack(acked * mss_bytes);
        let ack = far.ack(ack, (segs - marked) * mss_bytes, marked * mss_bytes);
        conn.guest_gets(ack);
        model.on_ack(acked.into(), sent.into(), segs.into(), marked.into());
        let at = format!("{told:?}, seed {seed}, step {step}");
        assert_eq!(u64::from(alpha(&conn)), model.alpha, "alpha: {at}");
        assert_eq!(u64::from(conn.cwnd()), model.cwnd, "cwnd: {at}");
        cwnds += u64::from(conn.cwnd());
    }
    assert!(conn.flow.reductions > 0);
    cwnds
}

fn without_prr(name: &str) -> Params {
    let mut params = underlay(name);
    params.0.prr = 0;
    params
}

#[test]
fn it_is_dctcp_to_the_segment() {
    for seed in 0..300 {
        for told in [Told::Reports, Told::DctcpEcho] {
            compare(without_prr("dctcp"), told, seed, &mut Model::linux(1));
        }
    }
}

#[test]
fn the_floor_is_the_operators() {
    for floor_segs in [1, 2, 5] {
        let mut params = without_prr("dctcp");
        params.0.window_floor_segs = floor_segs;
        let mut lowest = u32::MAX;
        for seed in 0..50 {
            let mut model = Model::linux(floor_segs.into());
            compare(params, Told::Reports, seed, &mut model);
        }
        // All marked, for long.
        let mut conn = conn(params, 5, Told::Reports);
        let mut far = Far::new(Told::Reports);
        let mss_bytes = conn.mss();
        let (mut sent, mut acked) = (0, 0);
        for _ in 0..200 {
            while sent - acked < conn.cwnd() {
                conn.send(sent * mss_bytes, mss_bytes);
                sent += 1;
            }
            acked += 1;
            let ack = conn.ack(acked * mss_bytes);
            let action = conn.guest_gets(far.ack(ack, 0, mss_bytes));
            lowest = lowest.min(conn.shown_bytes(&action) / mss_bytes);
        }
        assert_eq!((conn.cwnd(), lowest), (floor_segs, floor_segs));
    }
}

#[test]
fn alpha_begins_at_one_and_decays_to_nothing() {
    let mut conn = conn(without_prr("dctcp"), 5, Told::Reports);
    let mut far = Far::new(Told::Reports);
    assert_eq!(alpha(&conn), 1024);
    let mss_bytes = conn.mss();
    let mut before = 1024;
    for window in 0..200 {
        conn.send(window * mss_bytes, mss_bytes);
        let ack = conn.ack((window + 1) * mss_bytes);
        conn.guest_gets(far.ack(ack, mss_bytes, 0));
        assert!(alpha(&conn) < before || before == 0);
        before = alpha(&conn);
    }
    assert_eq!(alpha(&conn), 0);
}

#[test]
fn alpha_is_the_fraction_that_is_marked() {
    // RFC 8257, 3.3, step 6, which knows no integers.
    for of_twenty in [1, 2, 5, 10, 15, 19, 20] {
        let mut conn = conn(without_prr("dctcp"), 5, Told::Reports);
        let mut far = Far::new(Told::Reports);
        let bytes = conn.mss() / 20;
        let (mut sent, mut exact) = (0, 1.0f64);
        for _ in 0..100 {
            conn.send(sent, 20 * bytes);
            sent += 20 * bytes;
            let ack = conn.ack(sent);
            conn.guest_gets(far.ack(ack, (20 - of_twenty) * bytes, of_twenty * bytes));
            exact += (f64::from(of_twenty) / 20.0 - exact) / 16.0;
            let error = f64::from(alpha(&conn)) / 1024.0 - exact;
            assert!(error.abs() <= 1.0 / 64.0, "{error} at {of_twenty} of 20");
        }
    }
}

#[test]
fn alpha_moves_once_a_window() {
    let mut conn = conn(without_prr("dctcp"), 5, Told::Reports);
    let mut far = Far::new(Told::Reports);
    let mss_bytes = conn.mss();
    conn.send_segs(0, 10);
    let ack = conn.ack(mss_bytes);
    conn.guest_gets(far.ack(ack, mss_bytes, 0));
    assert_eq!(alpha(&conn), 960);
    for segs in 2..10 {
        let ack = conn.ack(segs * mss_bytes);
        conn.guest_gets(far.ack(ack, mss_bytes, 0));
        assert_eq!(alpha(&conn), 960);
    }
    let ack = conn.ack(10 * mss_bytes);
    conn.guest_gets(far.ack(ack, mss_bytes, 0));
    assert_eq!(alpha(&conn), 900);
}

/// A request and its response, again and again: what comes back while nothing is in flight tells
/// nothing of the path (Linux: dctcp_update_alpha, of what was delivered since the last window).
#[test]
fn alpha_stays_while_a_response_comes() {
    for told in [Told::Reports, Told::DctcpEcho] {
        for request in 0..3 {
            let mut conn = conn(without_prr("dctcp"), 5, told);
            let mut far = Far::new(told);
            let mss_bytes = conn.mss();
            for number in 0..request {
                conn.send(number * mss_bytes, mss_bytes);
                let ack = conn.ack((number + 1) * mss_bytes);
                conn.guest_gets(far.ack(ack, mss_bytes, 0));
            }
            let before = alpha(&conn);
            for number in 0..100 {
                let offset = number * 1440;
                let ack = conn.ack(request * mss_bytes);
                let response = ack.seq(conn.peer_seq(offset)).len(1440);
                conn.guest_gets(if told == Told::Reports {
                    response
                } else {
                    far.ack(response, 0, 0)
                });
                conn.guest_acks(offset + 1440);
            }
            assert_eq!(alpha(&conn), before, "{told:?}, after {request} requests");
        }
    }
}

#[test]
fn requests_of_which_all_is_marked_keep_alpha_at_one() {
    for told in [Told::Reports, Told::DctcpEcho] {
        let mut conn = conn(without_prr("dctcp"), 5, told);
        let mut far = Far::new(told);
        let mss_bytes = conn.mss();
        let (mut acked, mut came) = (0, 0);
        for _ in 0..200 {
            let segs = conn.cwnd().min(4);
            conn.send_segs(acked, acked + segs);
            for _ in 0..segs {
                acked += 1;
                let ack = conn.ack(acked * mss_bytes);
                conn.guest_gets(far.ack(ack, 0, mss_bytes));
            }
            for _ in 0..10 {
                let response = conn.ack(acked * mss_bytes).seq(conn.peer_seq(came)).len(1440);
                conn.guest_gets(response);
                came += 1440;
            }
        }
        assert_eq!(alpha(&conn), 1024, "{told:?}");
    }
}

/// What a FACK reports may come before or behind what it went beside, which acknowledges it.
#[test]
fn alpha_moves_once_a_window_by_facks_too() {
    for fack_first in [true, false] {
        let mut conn = conn(without_prr("dctcp"), 5, Told::Reports);
        let mss_bytes = conn.mss();
        // It has reported before; until then ECE is all that there is.
        conn.send(0, mss_bytes);
        conn.guest_gets(conn.ack(mss_bytes).pack(1 + mss_bytes, 0));
        let (mut ect0_bytes, mut ce_bytes) = (1 + mss_bytes, 0);
        let mut model = Model::linux(1);
        model.on_ack(1, 1, 1, 0);
        for number in 1..200 {
            conn.send(number * mss_bytes, mss_bytes);
            let marked = number % 2;
            ect0_bytes += (1 - marked) * mss_bytes;
            ce_bytes += marked * mss_bytes;
            let end = (number + 1) * mss_bytes;
            let response = conn.ack(end).seq(conn.peer_seq(number * 100)).len(100);
            let fack =
                conn.ack(end - 1).seq(conn.peer_seq(number * 100)).fack(ect0_bytes, ce_bytes);
            for segment in if fack_first { [fack, response] } else { [response, fack] } {
                conn.guest_gets(segment);
            }
            let sent = u64::from(number + 1);
            model.on_ack(sent, sent, 1, marked.into());
            assert_eq!(u64::from(alpha(&conn)), model.alpha, "after {sent}, {fack_first}");
        }
        assert!(alpha(&conn).abs_diff(512) < 64, "{}", alpha(&conn));
    }
}

#[test]
fn a_loss_halves_whatever_alpha_is() {
    // RFC 8257, 3.4; Linux: dctcp_react_to_loss.
    for name in ["dctcp", "dctcp-priority"] {
        for (cwnd, half) in [(10, 5), (11, 5), (3, 1), (40, 20)] {
            let mut params = underlay(name);
            params.0.initial_window_segs = cwnd;
            let mut conn = conn(params, 5, Told::Reports);
            conn.flow.0.cc.own[sys::DCTCP_ALPHA as usize] = 10;
            conn.send_segs(0, cwnd);
            for _ in 0..4 {
                conn.guest_gets(conn.ack(0));
            }
            assert_eq!(conn.flow.reductions, u32::from(cwnd > 0), "{name}");
            assert_eq!(conn.flow.cc.ssthresh_segs, half, "{name}, {cwnd} segments");
        }
    }
}

#[test]
fn a_classic_echo_halves_whatever_alpha_is() {
    // A latched ECE does not tell how much was marked.
    for (cwnd, half) in [(10, 5), (11, 5), (40, 20)] {
        let mut params = without_prr("dctcp");
        params.0.initial_window_segs = cwnd;
        let mut conn = conn(params, 5, Told::ClassicEcho);
        conn.flow.0.cc.own[sys::DCTCP_ALPHA as usize] = 10;
        conn.send_segs(0, cwnd);
        conn.guest_gets(conn.ack(conn.mss()).ece());
        assert_eq!((conn.cwnd(), conn.flow.cc.ssthresh_segs), (half, half));
        conn.send_segs(cwnd, cwnd + 1);
        for segs in 2..=cwnd {
            conn.guest_gets(conn.ack(segs * conn.mss()).ece());
        }
        assert_eq!(conn.flow.reductions, 1, "once a window");
    }
}

#[test]
fn a_timeout_is_renos() {
    let mut conn = conn(underlay("dctcp"), 5, Told::Reports);
    conn.send_segs(0, 10);
    conn.wait_us(1_500_000).deadline();
    assert_eq!((conn.cwnd(), conn.flow.cc.ssthresh_segs), (1, 5));
}

#[test]
fn all_that_it_sends_is_ect_but_its_syns() {
    // A switch that marks by threshold drops what is not (RFC 8257, 5.1; RFC 8311, 4.3).
    let mut conn = Conn::new(underlay("dctcp"), 5);
    assert!(is_not_ect(&conn.guest_syn(linux_syn().room(ROOM_BYTES))));
    conn.peer_synack(linux_syn().ece().accept());
    assert!(is_ect0(&conn.guest_acks(0)), "a pure ACK");
    assert!(is_ect0(&conn.send(0, 1000)));
    assert!(is_ect0(&conn.send(0, 1000)), "a retransmission");
    assert!(is_ect0(&conn.guest_sends(conn.data(1000, 0).fin())));
    let mut conn = Conn::new(underlay("dctcp"), 5);
    conn.peer_syn(linux_syn().asking_ecn());
    assert!(is_not_ect(&conn.guest_synack(linux_syn())));
    // A peer without ECN gets none.
    let mut conn = Conn::new(underlay("dctcp"), 5);
    conn.guest_syn(linux_syn());
    conn.peer_synack(linux_syn());
    assert!(is_not_ect(&conn.send(0, 1000)));
}

#[test]
fn priority_follows_equation_1() {
    // AC/DC, 3.4: rwnd * (1 - (alpha - alpha * beta / 2)).
    for (beta_1024, beta) in [(0u16, 0.0), (256, 0.25), (512, 0.5), (768, 0.75), (1024, 1.0)] {
        for alpha in [0u32, 1, 100, 512, 700, 1024] {
            for cwnd in [1u32, 2, 7, 10, 100, 700] {
                let mut params = without_prr("dctcp-priority");
                params.0.beta_1024 = beta_1024;
                params.0.initial_window_segs = cwnd;
                let mut conn = conn(params, 5, Told::Reports);
                let mss_bytes = conn.mss();
                conn.send_segs(0, cwnd);
                // Inside of a window, so that the marks change alpha later.
                conn.flow.0.cc.own[sys::DCTCP_ALPHA as usize] = alpha;
                conn.flow.0.cc.own[sys::DCTCP_WINDOW_END as usize] = conn.flow.snd_nxt + 1;
                conn.guest_gets(conn.ack(mss_bytes).pack(1, mss_bytes));
                assert_eq!(conn.flow.reductions, 1);
                let share = f64::from(alpha) / 1024.0;
                let left = f64::from(cwnd) * (1.0 - (share - share * beta / 2.0));
                let error = f64::from(conn.flow.cc.ssthresh_segs) - left.max(1.0);
                // Segments are whole; from two on the nearest number of them.
                let bounds = if cwnd <= 2 { -0.5..0.501 } else { -1e-9..1.0 };
                assert!(
                    bounds.contains(&error),
                    "beta {beta}, alpha {alpha}, cwnd {cwnd}: {error}"
                );
            }
        }
    }
}

#[test]
fn a_priority_of_one_is_dctcp() {
    for seed in 0..60 {
        compare(without_prr("dctcp-priority"), Told::Reports, seed, &mut Model::linux(1));
        // More than one is one.
        let mut params = without_prr("dctcp-priority");
        params.0.beta_1024 = u16::MAX;
        compare(params, Told::Reports, seed, &mut Model::linux(1));
    }
}

#[test]
fn a_lower_priority_gives_way() {
    let left = |beta_1024: u64| {
        let mut params = without_prr("dctcp-priority");
        params.0.beta_1024 = beta_1024 as u16;
        let mut cwnds = 0;
        for seed in 0..20 {
            let cut = move |cwnd, alpha| cut(cwnd, alpha * (2048 - beta_1024));
            cwnds += compare(params, Told::Reports, seed, &mut Model::new(1, cut));
        }
        cwnds
    };
    let left = [0, 256, 512, 768, 1024].map(left);
    assert!(left.is_sorted() && left[0] < left[4], "{left:?}");
}
