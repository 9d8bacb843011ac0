//! Pools: flows share a window, and the pool's account is exact.

use crate::common::sim::Rng;
use crate::common::*;
use vcc_engine::{Mode, Params, Pool, sys};

const TOTAL_BYTES: u32 = 200 << 10;

fn pooled(weight: u16) -> Params {
    params(|p| {
        p.pool_weight = weight;
        p.pool_bytes = TOTAL_BYTES;
    })
}

/// The connections of a pool.
struct Flows {
    pool: Pool,
    conns: Vec<Conn>,
    now_us: u64,
}

impl Flows {
    fn new() -> Self {
        Self { pool: Pool::default(), conns: Vec::new(), now_us: 1_000_000 }
    }

    fn guest_sends(&mut self, which: usize, segment: Seg) -> vcc_engine::Action {
        let Conn { flow, params, .. } = &mut self.conns[which];
        let action = self.pool.from_guest(flow, params, segment.at_us(self.now_us).0);
        self.check();
        action
    }

    fn guest_gets(&mut self, which: usize, segment: Seg) -> vcc_engine::Action {
        let Conn { flow, params, .. } = &mut self.conns[which];
        let action = self.pool.to_guest(flow, params, segment.at_us(self.now_us).0);
        self.check();
        action
    }

    /// Active open by the guest; returns its index.
    fn open(&mut self, params: Params) -> usize {
        let which = self.conns.len();
        self.conns.push(Conn::new(params, 5));
        self.guest_sends(which, linux_syn().seq(5));
        self.guest_gets(which, linux_syn().ece().seq(PEER_ISS).ack(6));
        let answer = self.conns[which].data(0, 0);
        self.guest_sends(which, answer);
        which
    }

    /// Passive open.
    fn accept(&mut self, params: Params) -> usize {
        self.accept_with(params, linux_syn())
    }

    /// Passive open, answered with these options.
    fn accept_with(&mut self, params: Params, answer: Seg) -> usize {
        let which = self.conns.len();
        self.conns.push(Conn::new(params, 5));
        self.guest_gets(which, linux_syn().seq(PEER_ISS));
        self.guest_sends(which, answer.seq(5).ack(PEER_ISS.wrapping_add(1)));
        let ack = self.conns[which].ack(0);
        self.guest_gets(which, ack);
        which
    }

    fn sent(&self, which: usize) -> u32 {
        let conn = &self.conns[which];
        conn.flow.snd_nxt.wrapping_sub(conn.seq(0))
    }

    /// The unused rest of the shown window.
    fn may_send(&self, which: usize) -> u32 {
        let flow = &self.conns[which].flow;
        (flow.right_edge.wrapping_sub(flow.snd_nxt) as i32).max(0) as u32
    }

    /// Sends as much as it may, in full segments.
    fn send_all(&mut self, which: usize) {
        let mss_bytes = self.conns[which].mss();
        for _ in 0..self.may_send(which) / mss_bytes {
            let data = self.conns[which].data(self.sent(which), mss_bytes);
            self.guest_sends(which, data);
        }
    }

    fn acknowledge(&mut self, which: usize) {
        let ack = self.conns[which].ack(self.sent(which));
        self.guest_gets(which, ack);
    }

    fn wait_ms(&mut self, ms: u64) {
        self.now_us += ms * 1000;
        for Conn { flow, params, .. } in &mut self.conns {
            self.pool.idle(flow, params, (self.now_us / 1000) as u32);
        }
        self.check();
    }

    fn held_bytes(&self, which: usize) -> u32 {
        let flow = &self.conns[which].flow;
        let edge = flow.snd_una.wrapping_add(
            (flow.right_edge.wrapping_sub(flow.snd_una) as i32)
                .max(flow.snd_nxt.wrapping_sub(flow.snd_una) as i32)
                .max(0) as u32,
        );
        let counts = u32::from(flow.stage) == sys::STAGE_ESTABLISHED;
        if counts { edge.wrapping_sub(flow.snd_una) } else { 0 }
    }

    /// The account: the members' held bytes, and the active members' weight.
    #[track_caller]
    fn check(&self) {
        let has = |which: usize, flag: u32| u32::from(self.conns[which].flow.shell) & flag != 0;
        let all = 0..self.conns.len();
        let members = all.clone().filter(|&which| has(which, sys::SHELL_POOL_MEMBER));
        let active = all.filter(|&which| has(which, sys::SHELL_POOL_ACTIVE));
        let held: u32 = members.map(|which| self.held_bytes(which)).sum();
        let idle = (0..self.conns.len()).filter(|&which| has(which, sys::SHELL_POOL_IDLE));
        let idle: u32 = idle.map(|which| self.held_bytes(which)).sum();
        let weight: u32 = active.map(|w| u32::from(self.conns[w].params.0.pool_weight)).sum();
        let sys::vcc_pool { held_bytes, idle_bytes, weight: active, .. } = self.pool.0;
        assert_eq!((held_bytes, idle_bytes, active), (held, idle, weight));
    }
}

#[test]
fn the_pool_limits_the_first_window() {
    let mut flows = Flows::new();
    for number in 0..90 {
        let which = if number % 2 == 0 { flows.open(pooled(1)) } else { flows.accept(pooled(1)) };
        flows.send_all(which);
    }
    // Two segments each, when nothing is left.
    let least = 90 * 2 * flows.conns[0].mss();
    assert!(flows.pool.0.held_bytes <= TOTAL_BYTES + least, "{:?}", flows.pool.0);
    assert!(flows.pool.0.overdrawn > 0, "an overdraft is counted");
    let mut alone = Flows::new();
    let first = alone.open(pooled(1));
    let sixteenth = TOTAL_BYTES / 16;
    assert!(sixteenth - alone.held_bytes(first) < alone.conns[first].mss());
    assert_eq!(alone.pool.0.overdrawn, 0);
}

#[test]
fn idle_flows_keep_an_eighth_at_most() {
    let mut flows = Flows::new();
    for _ in 0..40 {
        let which = flows.open(pooled(1));
        for _ in 0..30 {
            flows.send_all(which);
            flows.acknowledge(which);
        }
        flows.wait_ms(1000);
    }
    assert_eq!((flows.pool.0.held_bytes, flows.pool.0.weight), (0, 0));
    assert_eq!(flows.pool.0.overdrawn, 0);
    assert!(flows.pool.0.idle_bytes > TOTAL_BYTES / 4, "no window is taken back");
    let last = flows.open(pooled(1));
    for _ in 0..30 {
        flows.send_all(last);
        flows.acknowledge(last);
    }
    flows.send_all(last);
    let shown = flows.held_bytes(last);
    assert!((TOTAL_BYTES - TOTAL_BYTES / 8).abs_diff(shown) < 2 * 1448, "{shown}");
    for which in 0..40 {
        flows.send_all(which);
    }
    assert!(flows.pool.0.overdrawn > 0, "all at once they exceed the reserve");
}

/// The windows of two idle flows are kept free.
#[test]
fn few_resuming_flows_do_not_overdraw() {
    let mut flows = Flows::new();
    let (first, second) = (flows.open(pooled(3)), flows.accept(pooled(3)));
    let busy: Vec<usize> = (0..3).map(|_| flows.open(pooled(1))).collect();
    for step in 0..60 {
        for &which in &busy {
            flows.send_all(which);
        }
        flows.wait_ms(100);
        for &which in &busy {
            flows.acknowledge(which);
        }
        if step > 30 {
            flows.send_all(first);
            flows.send_all(second);
            flows.acknowledge(first);
            flows.acknowledge(second);
        }
    }
    assert_eq!(flows.pool.0.overdrawn, 0);
    assert!(flows.pool.0.most_held_bytes <= TOTAL_BYTES);
}

/// Windows of segments that are no multiple of the unit are rounded up: the pool provides for that,
/// or the window is a segment smaller.
#[test]
fn windows_that_are_rounded_up_do_not_overdraw() {
    let mut flows = Flows::new();
    let answer = linux_syn().mss(1410).without(sys::OPT_TIMESTAMPS);
    let all: Vec<usize> = (0..7).map(|_| flows.accept_with(pooled(1), answer)).collect();
    assert_ne!(flows.conns[0].mss() % 32, 0);
    for _ in 0..60 {
        for &which in &all {
            flows.send_all(which);
        }
        flows.wait_ms(10);
        for &which in &all {
            flows.acknowledge(which);
        }
    }
    assert_eq!(flows.pool.0.overdrawn, 0);
    assert!(flows.pool.0.held_bytes > TOTAL_BYTES / 10 * 9);
}

#[test]
fn a_flow_that_only_receives_becomes_inactive() {
    let mut flows = Flows::new();
    for _ in 0..20 {
        let which = flows.accept(pooled(1));
        let data = seg().seq(PEER_ISS.wrapping_add(1)).ack(6).len(1000).win(PEER_WINDOW);
        flows.guest_gets(which, data);
        assert_eq!(flows.pool.0.weight, 0);
    }
    flows.wait_ms(1000);
    assert_eq!(flows.pool.0.held_bytes, 0);
}

#[test]
fn a_vanished_peer_keeps_no_share() {
    let mut flows = Flows::new();
    let which = flows.open(pooled(3));
    flows.send_all(which);
    flows.wait_ms(120_000);
    assert_eq!(flows.pool.0.weight, 3, "its guest may still retransmit");
    flows.wait_ms(60_000);
    assert_eq!((flows.pool.0.held_bytes, flows.pool.0.weight), (0, 0));
    assert!(flows.pool.0.idle_bytes > 0, "it may resume");
}

/// The account stays exact under random events; each step checks it.
#[test]
fn the_account_is_exact() {
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let mut flows = Flows::new();
        for _ in 0..400 {
            let which = rng.range(0, 6) as usize;
            if which >= flows.conns.len() {
                let weight = rng.range(1, 5) as u16;
                if rng.chance(500) {
                    flows.open(pooled(weight));
                } else {
                    flows.accept(pooled(weight));
                }
                continue;
            }
            let mss_bytes = flows.conns[which].mss();
            match rng.range(0, 12) {
                0..4 => flows.send_all(which),
                4..7 => flows.acknowledge(which),
                7 => {
                    // Beyond its window.
                    let data = flows.conns[which].data(flows.sent(which), mss_bytes);
                    flows.guest_sends(which, data);
                }
                8 => flows.wait_ms(rng.range(0, 900)),
                9 => {
                    let mode = rng.pick(&[Mode::Enforce, Mode::Shadow, Mode::Drain]);
                    flows.conns[which].params.0.mode = mode.number();
                }
                10 => {
                    let again = linux_syn().seq(rng.pick(&[5, 90_005]));
                    flows.guest_sends(which, again);
                }
                _ => {
                    let end = flows.conns[which].data(flows.sent(which), 0).rst();
                    flows.guest_sends(which, end);
                }
            }
        }
    }
}
