//! A live flow's treatment changes: the results of its handshake stay, everything else changes.

use crate::common::sim::Rng;
use crate::common::*;
use vcc_engine::{Mode, Params, Underlay, sys};

const RELEASED: u32 = sys::FLOW_RELEASED;

fn by_name(underlay: &str) -> u8 {
    underlay.parse::<Underlay>().expect("an underlay").number()
}

fn treatment(mode: Mode, name: &str) -> Params {
    params(|p| (p.mode, p.underlay) = (mode.number(), by_name(name)))
}

fn judge(conn: &mut Conn, params: Params) {
    conn.flow.judge_anew(&params);
    conn.params = params;
}

#[test]
fn a_new_underlay_inherits_the_window() {
    let mut conn = Conn::established(treatment(Mode::Enforce, "reno-ecn"), 5);
    conn.flow.0.cc.cwnd_segs = 77;
    conn.flow.0.cc.ssthresh_segs = 60;
    judge(&mut conn, treatment(Mode::Enforce, "dctcp"));
    let cc = conn.flow.cc;
    assert_eq!((cc.cwnd_segs, cc.ssthresh_segs), (77, 60));
    assert_eq!(conn.flow.alpha(), Some(1.0), "RFC 8257, 3.3: alpha starts at 1");
}

#[test]
fn without_a_computed_window_cwnd_starts_from_the_flight() {
    let mut conn = Conn::established(treatment(Mode::Enforce, "transparent"), 5);
    conn.send_segs(0, 40);
    assert!(!conn.flow.is_bound());
    judge(&mut conn, treatment(Mode::Enforce, "cubic"));
    assert_eq!(conn.cwnd(), 40);
    let mut idle = Conn::established(treatment(Mode::Enforce, "transparent"), 5);
    judge(&mut idle, treatment(Mode::Enforce, "cubic"));
    assert_eq!(idle.cwnd(), 10, "the initial window");
}

#[test]
fn a_reduction_ends_with_its_underlay() {
    let reno = |name| params(|p| (p.underlay, p.window_max_bytes) = (by_name(name), 1 << 30));
    let mut conn = Conn::established(reno("reno"), 5).without_sack();
    conn.send_segs(0, 10);
    for _ in 0..=3 {
        conn.peer_ack_segs(0);
    }
    assert_eq!(u32::from(conn.flow.ca_state), sys::CA_RECOVERY);
    assert!(!conn.flow.is_bound(), "another treatment takes it over");
    judge(&mut conn, reno("transparent"));
    judge(&mut conn, reno("reno"));
    conn.send_segs(10, 12);
    conn.peer_ack_segs(12);
    assert_eq!(conn.cwnd(), 22, "slow start from the initial window");
}

#[test]
fn promises_of_the_handshake_are_kept() {
    let mut conn = Conn::new(treatment(Mode::Enforce, "reno-ecn"), 5);
    conn.guest_syn(linux_syn());
    judge(&mut conn, treatment(Mode::Shadow, "cubic"));
    assert_ne!(conn.flow.flags & RELEASED, 0, "an ECN-setup SYN was sent");
    judge(&mut conn, treatment(Mode::Enforce, "dctcp"));
    assert_eq!(conn.flow.flags & RELEASED, 0);
    let promised: Underlay = "reno-ecn".parse().expect("an underlay");
    assert_eq!(conn.flow.underlay, promised.number());
    let answer = conn.peer_synack(linux_syn().ece());
    assert!(lacks_flags(&answer, sys::TCP_ECE), "the guest requested no ECN");
}

#[test]
fn the_right_edge_of_a_transparent_flow_stays() {
    let mut conn = Conn::established(treatment(Mode::Enforce, "transparent"), 5);
    conn.send_segs(0, 4);
    let before = conn.peer_ack_segs(2);
    let edge = conn.shown_edge(2 * conn.mss(), &before);
    judge(&mut conn, treatment(Mode::Enforce, "reno"));
    let after = conn.peer_ack_segs(4);
    assert!(conn.shown_edge(4 * conn.mss(), &after) >= edge, "law 2");
}

#[test]
fn only_a_flow_that_depends_on_vcc_is_released() {
    for to in [
        treatment(Mode::Shadow, "reno-ecn"),
        treatment(Mode::Ignore, "reno-ecn"),
        treatment(Mode::Enforce, "transparent"),
    ] {
        let mut bound = Conn::established(treatment(Mode::Enforce, "reno-ecn"), 5);
        assert!(bound.flow.is_bound());
        let underlay = bound.flow.underlay;
        judge(&mut bound, to);
        assert_ne!(bound.flow.flags & RELEASED, 0);
        assert_eq!(bound.flow.underlay, underlay, "the underlay of its handshake stays");
        judge(&mut bound, treatment(Mode::Enforce, "dctcp"));
        assert_eq!(bound.flow.flags & RELEASED, 0);

        let mut free = Conn::established(treatment(Mode::Shadow, "reno-ecn"), 5);
        judge(&mut free, to);
        assert_eq!(free.flow.flags & RELEASED, 0);
    }
}

/// Guarantees to both ends of a connection, under any current treatment.
struct Outside {
    conn: Conn,
    sent: u32,
    acked: u32,
    /// Highest right edge shown, from the guest's first byte.
    edge: u32,
    received: u32,
    latched: bool,
    wanted: u32,
}

/// The peer's window field; larger than any flow here uses.
const OFFERED: u16 = 500;
const OFFERED_BYTES: u32 = (OFFERED as u32) << PEER_WSCALE;

impl Outside {
    fn guest_sends(&mut self) {
        let mss_bytes = self.conn.mss();
        if self.sent + mss_bytes > self.edge.min(self.acked + self.wanted) {
            return;
        }
        let action = self.conn.send(self.sent, mss_bytes);
        self.sent += mss_bytes;
        self.check_from_guest(&action);
    }

    fn guest_acks(&mut self) {
        let action = self.conn.guest_acks(self.received);
        self.check_from_guest(&action);
    }

    /// The guest goes to another host, with another clock and another treatment.
    fn moves(&mut self, to: Params, rng: &mut Rng) {
        self.conn.now_us = rng.range(1 << 30, 1 << 40);
        self.conn.params = to;
        let described = self.conn.flow.described();
        self.conn.flow = described.arrive(&to, self.conn.now_us).expect("a connection");
    }

    /// The fabric sees the negotiated ECN, and every mark is answered.
    fn check_from_guest(&mut self, action: &vcc_engine::Action) {
        let released = self.conn.flow.flags & RELEASED != 0;
        let fabric = self.conn.flow.has(sys::FLOW_ECN_FABRIC);
        if is_ect0(action) {
            assert!(fabric && !released, "a released flow must not send ECT");
        }
        if fabric {
            assert_eq!(has_flags(action, sys::TCP_ECE), self.latched, "RFC 3168, 6.1.3");
        }
    }

    fn peer_acks(&mut self, rng: &mut Rng) {
        let mss_bytes = self.conn.mss();
        let segs = (self.sent - self.acked) / mss_bytes;
        if segs == 0 {
            return;
        }
        self.acked += rng.range(1, u64::from(segs.min(3)) + 1) as u32 * mss_bytes;
        let mut ack = self.conn.ack(self.acked).win(OFFERED);
        ack = ack.seq(self.conn.peer_seq(self.received));
        if self.conn.flow.has(sys::FLOW_ECN_FABRIC) && rng.chance(30) {
            ack = ack.ece();
        }
        let action = self.conn.guest_gets(ack);
        assert!(!is_dropped(&action));
        let shown_bytes = self.conn.shown_bytes(&action);
        assert!(shown_bytes > 0, "law 3");
        assert!(shown_bytes <= OFFERED_BYTES, "law 1");
        let edge = self.acked + shown_bytes;
        // The field has a unit, and the window is rounded to it.
        assert!(
            edge + (1 << self.conn.flow.wscale_shown) > self.edge,
            "law 2: {edge} {}",
            self.edge
        );
        self.edge = self.edge.max(edge);
        assert!(lacks_flags(&action, sys::TCP_ECE), "the guest negotiated none");
    }

    fn peer_sends(&mut self, rng: &mut Rng) {
        let fabric = self.conn.flow.has(sys::FLOW_ECN_FABRIC);
        let mut data = seg().seq(self.conn.peer_seq(self.received)).len(1000);
        data = data.ack(self.conn.seq(self.acked)).win(OFFERED);
        if fabric && self.latched && rng.chance(500) {
            data = data.cwr();
            self.latched = false;
        }
        if fabric {
            data = if rng.chance(200) { data.ce() } else { data.ect0() };
            self.latched |= u32::from(data.0.ip_ecn) == sys::IP_ECN_CE;
        }
        self.received += 1000;
        let action = self.conn.guest_gets(data);
        assert_eq!(u32::from(action.ip_ecn), sys::IP_ECN_NOT_ECT, "law 5");
        assert!(lacks_flags(&action, sys::TCP_ECE) && lacks_flags(&action, sys::TCP_CWR), "law 5");
    }
}

/// Traffic in both directions, with the treatment changed at random, here or on another host.
#[test]
fn the_laws_hold_through_every_change_of_treatment() {
    let names = ["reno-ecn", "dctcp", "cubic", "reno", "transparent"];
    let modes = [Mode::Enforce, Mode::Enforce, Mode::Shadow, Mode::Ignore];
    let (mut released, mut limited, mut changes) = (0, 0, 0);
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let first = treatment(rng.pick(&modes[..3]), rng.pick(&names));
        let conn = Conn::established(first, rng.pick(&[5, u32::MAX - 20_000, 0x7fff_f000]));
        let edge = 10 * conn.mss();
        let mut it = Outside {
            conn,
            sent: 0,
            acked: 0,
            edge,
            received: 0,
            latched: false,
            wanted: rng.range(2000, 400_000) as u32,
        };
        for _ in 0..600 {
            let us = rng.range(1, 400);
            it.conn.wait_us(us);
            match rng.range(0, 100) {
                0..40 => it.guest_sends(),
                40..75 => it.peer_acks(&mut rng),
                75..85 => it.peer_sends(&mut rng),
                85..97 => it.guest_acks(),
                _ => {
                    let bound = it.conn.flow.is_bound();
                    let next = treatment(rng.pick(&modes), rng.pick(&names));
                    let ignored = next.0.mode == Mode::Ignore.number();
                    if ignored && !bound {
                        // The shell forgets it.
                        continue;
                    }
                    if rng.chance(500) {
                        it.moves(next, &mut rng);
                    } else {
                        judge(&mut it.conn, next);
                    }
                    changes += 1;
                    released += u32::from(it.conn.flow.flags & RELEASED != 0);
                }
            }
            limited += u32::from(
                it.conn.flow.window_shown_bytes().is_some_and(|bytes| bytes < OFFERED_BYTES / 2),
            );
        }
    }
    assert!(released > 500 && limited > 8_000 && changes > 3000, "{released} {limited} {changes}");
}
