//! Proportional Rate Reduction against a transcription of Linux's `tcp_cwnd_reduction`, which
//! counts whole segments (RFC 6937, 3, with the slow start reduction bound).

use crate::common::*;
use vcc_engine::{Params, sys};

/// `tcp_init_cwnd_reduction` and `tcp_cwnd_reduction` of Linux, for a NewReno sender.
struct LinuxPrr {
    prior_cwnd: i64,
    ssthresh: i64,
    delivered: i64,
    out: i64,
    /// Set by each reduction step: the limit of segments in the network.
    cwnd: i64,
}

impl LinuxPrr {
    fn enter(cwnd: u32) -> Self {
        let prior_cwnd = i64::from(cwnd);
        LinuxPrr {
            prior_cwnd,
            ssthresh: (prior_cwnd / 2).max(2),
            delivered: 0,
            out: 0,
            cwnd: prior_cwnd,
        }
    }

    /// Returns sndcnt; None if Linux returns early.
    fn reduce(&mut self, newly_delivered: i64, in_flight: i64, una_advanced: bool) -> Option<i64> {
        if newly_delivered <= 0 {
            return None;
        }
        let delta = self.ssthresh - in_flight;
        self.delivered += newly_delivered;
        let mut sndcnt = if delta < 0 {
            (self.ssthresh * self.delivered + self.prior_cwnd - 1) / self.prior_cwnd - self.out
        } else {
            let bound = (self.delivered - self.out).max(newly_delivered);
            (bound + i64::from(una_advanced)).min(delta)
        };
        sndcnt = sndcnt.max(i64::from(self.out == 0));
        self.cwnd = in_flight + sndcnt;
        Some(sndcnt)
    }
}

/// A sender that obeys its window, in whole segments, compared with the oracle.
struct Sender {
    conn: Conn,
    acked: u32,
    sent: u32,
    oracle: LinuxPrr,
}

impl Sender {
    /// `cwnd` segments in flight, of which the first was acknowledged with ECE.
    fn marked(isn: u32, cwnd: u32) -> Self {
        let mut conn = Conn::established(params(|p| p.initial_window_segs = cwnd), isn);
        conn.send_segs(0, cwnd);
        let mut oracle = LinuxPrr::enter(cwnd);
        let shown = conn.guest_gets(conn.ack(conn.mss()).ece());
        let mut sender =
            Sender { acked: 1, sent: cwnd, conn: conn.clone(), oracle: LinuxPrr::enter(cwnd) };
        let sndcnt = oracle.reduce(1, i64::from(cwnd) - 1, true);
        sender.conn = conn;
        sender.oracle = oracle;
        sender.check(&shown, sndcnt);
        sender.fill(&shown);
        sender
    }

    fn in_flight(&self) -> i64 {
        i64::from(self.sent - self.acked)
    }

    /// The engine's cwnd is the oracle's, and the window admits what Linux would send.
    #[track_caller]
    fn check(&self, shown: &vcc_engine::Action, sndcnt: Option<i64>) {
        assert_eq!(i64::from(self.conn.cwnd()), self.oracle.cwnd.max(1), "cwnd");
        let Some(sndcnt) = sndcnt else { return };
        let room_bytes =
            i64::from(self.conn.shown_bytes(shown)) - self.in_flight() * i64::from(self.conn.mss());
        assert_eq!(room_bytes, sndcnt.max(0) * i64::from(self.conn.mss()), "room");
    }

    /// The guest sends as much as it may.
    fn fill(&mut self, shown: &vcc_engine::Action) {
        let until = self.acked + self.conn.shown_bytes(shown) / self.conn.mss();
        self.oracle.out += i64::from(until - self.sent);
        self.conn.send_segs(self.sent, until);
        self.sent = until;
    }

    fn ack(&mut self, segs: u32) {
        self.acked += segs;
        let shown = self.conn.peer_ack_segs(self.acked);
        let sndcnt = self.oracle.reduce(segs.into(), self.in_flight(), true);
        self.check(&shown, sndcnt);
        self.fill(&shown);
    }
}

#[test]
fn an_ecn_reduction_is_linuxs() {
    for isn in ISNS {
        for cwnd in 4..60 {
            // ACKs of one segment, of two (delayed), and of many (GRO or ACK compression).
            for stride in [1, 2, 5] {
                let mut sender = Sender::marked(isn, cwnd);
                while sender.acked + stride <= cwnd {
                    sender.ack(stride);
                }
                assert_eq!(sender.conn.flow.ca_state, sys::CA_CWR as u8, "cwnd {cwnd}");
            }
        }
    }
}

/// A guest takes ACKs from its ring in batches: `batch` of them pass the port before it answers the
/// first, and the mark is on one of them. Linux itself answers each at once.
#[test]
fn a_guest_that_answers_late_is_granted_what_linux_would_send() {
    for cwnd in 4..60u32 {
        for batch in [2, 3, cwnd / 2, cwnd - 1] {
            for marked in 0..batch {
                let mut conn = Conn::established(params(|p| p.initial_window_segs = cwnd), 5);
                conn.flow.0.cc.ssthresh_segs = cwnd;
                conn.peer_ack(0);
                conn.send_segs(0, cwnd);
                let (mut acked, mut sent) = (0, cwnd);
                let mut oracle = LinuxPrr::enter(cwnd);
                while acked + batch <= cwnd {
                    for number in 0..batch {
                        acked += 1;
                        let ack = conn.ack(acked * conn.mss());
                        let is_marked = acked == marked + 1;
                        conn.guest_gets(if is_marked { ack.ece() } else { ack });
                        let sndcnt = if acked <= marked {
                            1
                        } else {
                            oracle.reduce(1, i64::from(sent - acked), true).unwrap().max(0)
                        };
                        sent += sndcnt as u32;
                        oracle.out += if acked > marked { sndcnt } else { 0 };
                        let edge = conn.flow.right_edge.wrapping_sub(conn.seq(0)) / conn.mss();
                        let at = format!("{cwnd}, {batch}, {marked}: {acked} ({number})");
                        assert_eq!(edge, sent, "{at}");
                    }
                    let before = conn.flow.snd_nxt.wrapping_sub(conn.seq(0)) / conn.mss();
                    conn.send_segs(before, sent);
                }
                // Law 6: what was about to be sent belongs to the window that was marked.
                assert_eq!(conn.flow.reductions, 1);
            }
        }
    }
}

#[test]
fn a_reduction_ends_at_ssthresh() {
    for cwnd in 4..60 {
        let mut sender = Sender::marked(5, cwnd);
        while sender.acked < cwnd {
            sender.ack(1);
        }
        sender.conn.peer_ack_segs(cwnd + 1);
        assert_eq!(u32::from(sender.conn.flow.ca_state), sys::CA_OPEN);
        assert_eq!(i64::from(sender.conn.cwnd()), sender.oracle.ssthresh);
    }
}

#[test]
fn an_ack_of_no_new_data_changes_nothing() {
    // The peer's data with a known acknowledgement: Linux returns early.
    for cwnd in [8, 20] {
        let mut sender = Sender::marked(5, cwnd);
        for step in 0..cwnd - 2 {
            sender.ack(1);
            let before = sender.conn.cwnd();
            let offset = sender.acked * sender.conn.mss();
            let data = sender.conn.guest_gets(sender.conn.ack(offset).len(100));
            assert_eq!(sender.conn.cwnd(), before, "step {step}");
            assert_eq!(
                sender.conn.shown_bytes(&data),
                (sender.sent - sender.acked) * sender.conn.mss(),
                "nothing left the network"
            );
        }
    }
}

/// A guest with SACK does not count duplicates by the window, so PRR's grants are shown on each
/// duplicate instead of at the end (RFC 6937, 1).
#[test]
fn a_guest_with_sack_is_shown_the_grants_on_duplicates() {
    for isn in ISNS {
        for cwnd in [10, 21, 40, 600] {
            let mut conn = Conn::established(params(|p| p.initial_window_segs = cwnd), isn);
            assert!(conn.flow.has(sys::FLOW_SACK));
            conn.peer_ack(0);
            conn.send_segs(0, cwnd);
            let mut sent = cwnd;
            let mut oracle = LinuxPrr::enter(cwnd);
            // The first segment is lost. Limited transmit (RFC 3042): each of two duplicates
            // releases one.
            for number in 1..=2 {
                let shown = conn.guest_gets(conn.ack(0).sack());
                assert_eq!(conn.shown_bytes(&shown), (cwnd + number) * conn.mss());
                conn.send_segs(sent, sent + 1);
                sent += 1;
            }
            conn.guest_gets(conn.ack(0).sack());
            let window_before = conn.flow.right_edge.wrapping_sub(conn.flow.snd_una) / conn.mss();
            conn.send_segs(0, 1);
            assert_eq!(u32::from(conn.flow.ca_state), sys::CA_RECOVERY);
            // The last grant may remain unused.
            sent = window_before.max(sent);
            conn.send_segs(cwnd + 2, sent);
            oracle.prior_cwnd = cwnd.into();
            oracle.out = 1 + i64::from(sent - cwnd - 2);
            let mut granted = 0;
            for number in 4..=cwnd + 1 {
                let shown = conn.guest_gets(conn.ack(0).sack());
                let in_flight = i64::from(sent) - i64::from(number);
                let sndcnt = oracle.reduce(1, in_flight, false).unwrap().max(0);
                assert_eq!(i64::from(conn.cwnd()), oracle.cwnd, "duplicate {number} of {cwnd}");
                let may_send = conn.shown_bytes(&shown) / conn.mss() - sent;
                assert_eq!(i64::from(may_send), sndcnt, "duplicate {number} of {cwnd}");
                conn.send_segs(sent, sent + may_send);
                sent += may_send;
                oracle.out += i64::from(may_send);
                granted += may_send;
            }
            assert!(granted >= cwnd / 2 - 2, "{granted} of {cwnd} during the recovery");
        }
    }
}

#[test]
fn a_guest_without_sack_sees_no_grant_on_duplicates() {
    let bare = linux_syn().without(sys::OPT_SACK_PERMITTED);
    let mut conn = Conn::opened(Params::default(), 5, bare, linux_syn());
    conn.send_segs(0, 10);
    let shown = conn.guest_gets(conn.ack(0));
    for _ in 0..8 {
        assert_eq!(conn.guest_gets(conn.ack(0)).window, shown.window);
        // Nor if the peer sends SACK blocks that were not negotiated.
        assert_eq!(conn.guest_gets(conn.ack(0).sack()).window, shown.window);
    }
}

/// One loss in a flight of `cwnd`: `before` segments delivered after it, then partial ACKs.
#[test]
fn a_recovery_counts_each_delivery_once() {
    // Linux: tcp_add_reno_sack, tcp_remove_reno_sacks.
    for isn in ISNS {
        for cwnd in [6, 10, 21, 40, 600] {
            let mut conn =
                Conn::established(params(|p| p.initial_window_segs = cwnd), isn).without_sack();
            conn.send_segs(0, 1);
            conn.peer_ack_segs(1);
            let cwnd = conn.cwnd();
            conn.send_segs(1, 1 + cwnd);
            let mut oracle = LinuxPrr::enter(cwnd);
            // The first and the middle segment are lost.
            let middle = cwnd / 2;
            let duplicates = cwnd - 2;
            for number in 1..=duplicates {
                conn.peer_ack_segs(1);
                if number < 3 {
                    continue;
                }
                oracle.reduce(1, i64::from(cwnd - number), false);
                assert_eq!(i64::from(conn.cwnd()), oracle.cwnd, "duplicate {number} of {cwnd}");
                if number == 3 {
                    conn.send_segs(1, 2);
                    oracle.out += 1;
                }
            }
            // A partial ACK up to the second hole: one segment is new, the rest were counted.
            conn.peer_ack_segs(1 + middle);
            let sacked = duplicates - (middle - 1);
            let in_flight = cwnd - middle - sacked;
            oracle.reduce(1, in_flight.into(), true);
            assert_eq!(i64::from(conn.cwnd()), oracle.cwnd, "partial ACK, cwnd {cwnd}");
            assert_eq!(conn.flow.reductions, 1);
        }
    }
}

#[test]
fn the_first_ack_releases_one_segment() {
    // For the fast retransmission.
    let mut conn = Conn::established(params(|p| p.initial_window_segs = 40), 5);
    conn.send_segs(0, 40);
    let shown = conn.guest_gets(conn.ack(conn.mss()).ece());
    assert_eq!(conn.shown_bytes(&shown), 40 * conn.mss(), "39 in flight and one more");
}

#[test]
fn the_smallest_windows_reduce() {
    // ssthresh is at least two segments, whatever cwnd was (RFC 5681, 3.1).
    for cwnd in 1..4 {
        let mut conn = Conn::established(params(|p| p.initial_window_segs = cwnd), 5);
        conn.send_segs(0, cwnd);
        conn.guest_gets(conn.ack(conn.mss()).ece());
        assert_eq!(conn.flow.cc.ssthresh_segs, 2);
        assert!(conn.cwnd() >= 1);
    }
}

#[test]
fn the_parameter_turns_it_off() {
    let mut conn =
        Conn::established(Params(vcc_engine::sys::vcc_params { prr: 0, ..Params::default().0 }), 5);
    conn.send_segs(0, 10);
    conn.guest_gets(conn.ack(conn.mss()).ece());
    for segs in 2..=10 {
        conn.peer_ack_segs(segs);
        assert_eq!(conn.cwnd(), 5);
    }
}

/// Six segments are lost, and each repair is acknowledged in so many parts. Returns the new segments
/// that the window admits until the last is repaired.
fn released(params: Params, parts: u32) -> u32 {
    let mut conn = Conn::established(params, 5);
    let mss_bytes = conn.mss();
    conn.peer_ack(0);
    conn.send_segs(0, 20);
    for _ in 6..20 {
        conn.guest_gets(conn.ack(0).sack());
    }
    let mut sent = 20;
    for repaired in 0..6 {
        conn.send_segs(repaired, repaired + 1);
        for part in 1..=parts {
            let ack = repaired * mss_bytes + mss_bytes * part / parts;
            conn.guest_gets(conn.ack(ack).sack());
            let edge_bytes = conn.flow.right_edge.wrapping_sub(conn.seq(0));
            let may_send = (edge_bytes / mss_bytes).max(sent);
            conn.send_segs(sent, may_send);
            sent = may_send;
        }
    }
    sent
}

/// Savage et al. (1999), 2.1: a receiver that acknowledges a segment in parts is not sent more. Parts
/// smaller than a unit of the window would round each window up.
#[test]
fn an_ack_in_parts_releases_no_more_than_the_whole() {
    let params = || params(|p| p.initial_window_segs = 20);
    for parts in [2, 3, 8] {
        assert!(released(params(), parts) <= released(params(), 1), "{parts} parts");
    }
}
