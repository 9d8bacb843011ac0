//! DCTCP (RFC 8257) and DCTCP with priorities (AC/DC, equation 1), against independent models.

mod alpha;
mod fractional;
mod late;
mod model;
mod others;
mod priority;

use crate::common::sim::Rng;
use crate::common::*;
use vcc_engine::{Action, Params, sys};

const COUNTER_MASK: u32 = 0xff_ffff;

fn alpha(conn: &Conn) -> u32 {
    conn.flow.cc.own[sys::DCTCP_ALPHA as usize]
}

/// How the sender half learns of marks.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Reporting {
    /// Reports of a vcc far end: cumulative bytes.
    Reports,
    /// A native DCTCP receiver: ECE on exactly the ACKs of marked data.
    DctcpEcho,
    /// A classic receiver: ECE until CWR.
    ClassicEcho,
}

fn conn(params: Params, isn: u32, reporting: Reporting) -> Conn {
    match reporting {
        Reporting::Reports => Conn::to_vcc(params, isn),
        Reporting::DctcpEcho => Conn::opened(params, isn, linux_syn(), linux_syn().ect0()),
        Reporting::ClassicEcho => Conn::established(params, isn),
    }
}

/// The far end's signalling of marks.
struct Far {
    reporting: Reporting,
    counters: (u32, u32),
}

impl Far {
    fn new(reporting: Reporting) -> Self {
        Far { reporting, counters: (1, 0) }
    }

    fn ack(&mut self, ack: Seg, unmarked_bytes: u32, marked_bytes: u32) -> Seg {
        self.counters.0 = (self.counters.0 + unmarked_bytes) & COUNTER_MASK;
        self.counters.1 = (self.counters.1 + marked_bytes) & COUNTER_MASK;
        // DCTCP's pure ACKs are ECT too.
        let ack = if self.reporting == Reporting::DctcpEcho { ack.ect0() } else { ack };
        match self.reporting {
            Reporting::Reports => ack.pack(self.counters.0, self.counters.1),
            _ if marked_bytes > 0 => ack.ece(),
            _ => ack,
        }
    }
}

fn without_prr(name: &str) -> Params {
    let mut params = underlay(name);
    params.0.prr = 0;
    params
}

/// The segments removed from `cwnd` by `share` / 2^21: rounded as Linux does, but to nearest below
/// Linux's floor of two.
fn cut(cwnd: u64, share: u64) -> u64 {
    let half = if cwnd <= 2 { 1 << 20 } else { 0 };
    (cwnd * share + half) >> 21
}

/// DCTCP as in Linux (tcp_dctcp.c) without PRR, written from that and from RFC 8257, 3.3, in whole
/// segments.
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

    /// An ACK of `acked` more segments up to `una`, `marked` of them marked; `nxt` have been sent.
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

/// Runs random marks through the engine and the model, which must agree after every ACK. Returns
/// the sum of the windows.
fn compare(params: Params, reporting: Reporting, seed: u64, model: &mut Model) -> u64 {
    let mut cwnds = 0;
    let mut rng = Rng::new(seed);
    let isn = rng.pick(&ISNS);
    let mut conn = conn(params, isn, reporting);
    let mut far = Far::new(reporting);
    let mss_bytes = conn.mss();
    let mut mark_permille = 0;
    let (mut sent, mut acked) = (0u32, 0u32);
    for step in 0..1500 {
        if step % 100 == 0 {
            mark_permille = rng.pick(&[0, 5, 50, 200, 500, 1000]);
        }
        while sent - acked < conn.cwnd() && sent - acked < 700 {
            let mut data = conn.data(sent * mss_bytes, mss_bytes);
            sent += 1;
            // There the write ends, not the window.
            if sent - acked == 700 {
                data = data.psh();
            }
            conn.guest_sends(data);
        }
        if sent == acked {
            continue;
        }
        // A DCTCP receiver does not mix marked and unmarked data in one ACK (RFC 8257, 3.2).
        let segs = rng.range(1, u64::from(sent - acked).min(3) + 1) as u32;
        let marked = match reporting {
            Reporting::Reports => (0..segs).filter(|_| rng.chance(mark_permille)).count() as u32,
            _ => segs * u32::from(rng.chance(mark_permille)),
        };
        acked += segs;
        let ack = conn.ack(acked * mss_bytes);
        let ack = far.ack(ack, (segs - marked) * mss_bytes, marked * mss_bytes);
        conn.guest_gets(ack);
        model.on_ack(acked.into(), sent.into(), segs.into(), marked.into());
        let at = format!("{reporting:?}, seed {seed}, step {step}");
        assert_eq!(u64::from(alpha(&conn)), model.alpha, "alpha: {at}");
        assert_eq!(u64::from(conn.cwnd()), model.cwnd, "cwnd: {at}");
        cwnds += u64::from(conn.cwnd());
    }
    assert!(conn.flow.reductions > 0);
    cwnds
}
