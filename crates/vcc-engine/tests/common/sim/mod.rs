//! A connection in virtual time: a guest, its port with the engine, a path, a peer.

mod host;
mod laws;
mod native;
mod ranges;
mod rng;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub use host::{Host, HostConfig, Packet, Stage};
pub use laws::{Counts, Laws};
pub use rng::Rng;
use vcc_engine::{Action, FlowState, Params, sys};

/// The clock starts just before its 32-bit microseconds wrap.
const START_US: u64 = u32::MAX as u64 - 200_000;
/// Long enough for every transfer here, with all its timeouts.
const LONGEST_US: u64 = 3_600_000_000;
/// A transfer that needs more is stuck in a loop.
const STEPS_MAX: u64 = 400_000;

/// One direction of the path.
#[derive(Clone, Copy, Default)]
pub struct PathConfig {
    pub delay_us: u64,
    /// Time on the wire of one segment: what spaces ACKs out.
    pub spacing_us: u64,
    pub loss_permille: u32,
    pub duplicate_permille: u32,
    pub reorder_permille: u32,
    pub mark_permille: u32,
}

pub struct Scenario {
    pub seed: u64,
    pub params: Params,
    pub guest: HostConfig,
    pub peer: HostConfig,
    pub to_peer: PathConfig,
    pub to_guest: PathConfig,
    /// Lost between the port and the guest, whose queue is full.
    pub tap_loss_permille: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Guest,
    Peer,
}

pub struct Sim {
    pub now_us: u64,
    pub steps: u64,
    rng: Rng,
    params: Params,
    flow: Option<FlowState>,
    deadline_at: u64,
    pub guest: Host,
    pub peer: Host,
    paths: [PathConfig; 2],
    tap_loss_permille: u32,
    free_at: [u64; 2],
    /// (arrival, order, where, index into `packets`)
    arrivals: BinaryHeap<Reverse<(u64, u64, Side, usize)>>,
    packets: Vec<Packet>,
    pub laws: Laws,
    /// FNV-1a over all actions: the same seed must give the same.
    pub digest: u64,
    pub largest_cwnd_error_segs: i64,
}

impl Sim {
    pub fn new(scenario: Scenario) -> Self {
        Sim {
            now_us: START_US,
            steps: 0,
            rng: Rng::new(scenario.seed),
            params: scenario.params,
            flow: None,
            deadline_at: u64::MAX,
            laws: Laws::new(scenario.params, scenario.guest.opens),
            guest: Host::new(scenario.guest),
            peer: Host::new(scenario.peer),
            paths: [scenario.to_guest, scenario.to_peer],
            tap_loss_permille: scenario.tap_loss_permille,
            free_at: [0; 2],
            arrivals: BinaryHeap::new(),
            packets: Vec::new(),
            digest: 0xcbf2_9ce4_8422_2325,
            largest_cwnd_error_segs: 0,
        }
    }

    pub fn flow(&self) -> FlowState {
        self.flow.unwrap_or_default()
    }

    /// Runs until both streams are delivered, or the connection is reset.
    pub fn run(&mut self) {
        self.guest.open(self.now_us);
        self.peer.open(self.now_us);
        self.drain();
        while !self.is_finished() {
            self.steps += 1;
            assert!(self.steps < STEPS_MAX, "no end after {STEPS_MAX} steps");
            let Some(next_us) = self.next_event() else {
                panic!("stalled: nothing is under way and no timer runs");
            };
            self.now_us = next_us.max(self.now_us);
            assert!(self.now_us < START_US + LONGEST_US, "stalled: an hour has passed");
            self.step();
        }
    }

    fn is_finished(&self) -> bool {
        let reset = self.guest.stage == Stage::Reset || self.peer.stage == Stage::Reset;
        let done = |host: &Host| host.sent_all() && host.received_all();
        reset || (done(&self.guest) && done(&self.peer))
    }

    fn next_event(&self) -> Option<u64> {
        let arrival = self.arrivals.peek().map(|Reverse(arrival)| arrival.0);
        [arrival, self.guest.next_timer(), self.peer.next_timer()].into_iter().flatten().min()
    }

    fn step(&mut self) {
        if self.deadline_at <= self.now_us {
            self.deadline();
        }
        match self.arrivals.peek() {
            Some(Reverse(arrival)) if arrival.0 <= self.now_us => {
                let Some(Reverse((_, _, side, index))) = self.arrivals.pop() else {
                    unreachable!("peeked")
                };
                let packet = self.packets[index];
                match side {
                    Side::Guest => self.port_to_guest(packet),
                    Side::Peer => self.peer.receive(self.now_us, &packet),
                }
            }
            _ => {
                for host in [&mut self.guest, &mut self.peer] {
                    if host.next_timer().is_some_and(|at| at <= self.now_us) {
                        host.timer(self.now_us);
                    }
                }
            }
        }
        self.drain();
    }

    /// Carries what the hosts have sent into the path.
    fn drain(&mut self) {
        for packet in std::mem::take(&mut self.guest.out) {
            self.port_from_guest(packet);
        }
        for packet in std::mem::take(&mut self.peer.out) {
            self.enter(Side::Guest, packet);
        }
    }

    fn port_from_guest(&mut self, mut packet: Packet) {
        packet.segment.now_us = self.now_us;
        let mut flow = self.flow();
        let action = flow.from_guest(&self.params, &packet.segment);
        self.laws.guest_sent(&self.flow(), &flow, &packet.segment, &action);
        self.after_call(flow, &action);
        packet.segment.flags = action.flags;
        packet.segment.ip_ecn = action.ip_ecn;
        packet.segment.mss = action.mss;
        packet.segment.wscale = action.wscale;
        for piece in segmented(packet) {
            self.enter(Side::Peer, piece);
        }
    }

    fn port_to_guest(&mut self, mut packet: Packet) {
        packet.segment.now_us = self.now_us;
        let mut flow = self.flow();
        let action = flow.to_guest(&self.params, &packet.segment);
        self.laws.guest_got(&self.flow(), &flow, &packet.segment, &action);
        self.after_call(flow, &action);
        let lost = self.rng.chance(self.tap_loss_permille);
        if u32::from(action.verdict) == sys::VCC_DROP || lost {
            return;
        }
        packet.segment.flags = action.flags;
        packet.segment.ip_ecn = action.ip_ecn;
        packet.segment.window = action.window;
        packet.segment.mss = action.mss;
        packet.segment.wscale = action.wscale;
        self.guest.receive(self.now_us, &packet);
        // A FIN of its own is a segment to Linux, and one byte to the engine.
        let native = self.guest.native.as_ref().filter(|_| !self.guest.sent_all());
        if let Some(native) = native {
            // The host has sent already; its cwnd is as it was after the ACK.
            let error_segs = (native.cwnd - i64::from(flow.cc.cwnd_segs)).abs();
            self.largest_cwnd_error_segs = self.largest_cwnd_error_segs.max(error_segs);
        }
    }

    fn after_call(&mut self, flow: FlowState, action: &Action) {
        let words = [
            u64::from(action.verdict),
            u64::from(action.ip_ecn),
            u64::from(action.flags),
            u64::from(action.window),
            u64::from(action.mss),
            u64::from(action.wscale),
            u64::from(flow.cc.cwnd_segs),
            self.now_us,
        ];
        for word in words {
            self.digest = (self.digest ^ word).wrapping_mul(0x0100_0000_01b3);
        }
        self.flow = (action.forget == 0).then_some(flow);
        // As a shell's timer would: after each segment anew.
        let mut probe = flow;
        let wait = probe.deadline(&self.params, self.now_us);
        self.deadline_at = self.now_us + u64::from(wait.deadline_ms) * 1000;
    }

    fn deadline(&mut self) {
        let Some(before) = self.flow else { return };
        let mut flow = before;
        let action = flow.deadline(&self.params, self.now_us);
        self.laws.time_passed(&before, &flow, &action);
        self.flow = (action.forget == 0).then_some(flow);
        self.deadline_at = self.now_us + u64::from(action.deadline_ms.max(1)) * 1000;
    }

    fn enter(&mut self, to: Side, mut packet: Packet) {
        let path = self.paths[to as usize];
        if self.rng.chance(path.loss_permille) {
            return;
        }
        let markable = packet.segment.ip_ecn != 0;
        if markable && self.rng.chance(path.mark_permille) {
            packet.segment.ip_ecn = sys::IP_ECN_CE as u8;
        }
        let leaves_us = self.now_us.max(self.free_at[to as usize]) + path.spacing_us;
        self.free_at[to as usize] = leaves_us;
        let copies = 1 + u64::from(self.rng.chance(path.duplicate_permille));
        for _ in 0..copies {
            let mut arrives_us = leaves_us + path.delay_us;
            if self.rng.chance(path.reorder_permille) {
                arrives_us += self.rng.range(100, 6000);
            }
            let order = self.packets.len();
            self.packets.push(packet);
            self.arrivals.push(Reverse((arrives_us, order as u64, to, order)));
        }
    }
}

/// Cuts a super-segment as TSO does: CWR on the first, FIN and PSH on the last.
fn segmented(packet: Packet) -> Vec<Packet> {
    let whole = packet.segment;
    if whole.seg_bytes == 0 {
        return vec![packet];
    }
    let mut pieces = Vec::new();
    let mut offset = 0;
    while offset < whole.payload_bytes {
        let mut piece = packet;
        let bytes = whole.seg_bytes.min(whole.payload_bytes - offset);
        piece.segment.seq = whole.seq.wrapping_add(offset);
        piece.segment.payload_bytes = bytes;
        piece.segment.seg_bytes = 0;
        if offset > 0 {
            piece.segment.flags &= !(sys::TCP_CWR as u16);
        }
        if offset + bytes < whole.payload_bytes {
            piece.segment.flags &= !((sys::TCP_FIN | sys::TCP_PSH) as u16);
        }
        offset += bytes;
        pieces.push(piece);
    }
    pieces
}
