//! A connection in virtual time: a guest, its port with the engine, a path, a peer.

mod forge;
mod host;
mod laws;
mod native;
mod packet;
mod path;
mod port;
mod ranges;
mod rng;

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

pub use host::{Host, HostConfig, Packet, Runts, Stage};
pub use laws::{Counts, Laws};
pub use path::PathConfig;
pub use rng::Rng;
use vcc_engine::{Action, FlowState, Params, sys};

use laws::unheld::is_as_strict;
use packet::{fack_beside, rewrite, segmented};
use port::Port;

/// Shortly before the 32-bit microsecond clock wraps.
const START_US: u64 = u32::MAX as u64 - 200_000;
/// Limit of virtual time, enough for every transfer with all its timeouts.
const LONGEST_US: u64 = 3_600_000_000;
/// Limit of steps: more indicate an endless loop.
const STEPS_MAX: u64 = 400_000;

/// Options that vcc sends and reads, not its guest.
pub const OPT_OURS: u16 = (sys::OPT_HELLO
    | sys::OPT_PACK
    | sys::OPT_FACK
    | sys::OPT_OURS_BAD
    | sys::OPT_ACCECN
    | sys::OPT_ACCECN_CE) as u16;

pub struct Scenario {
    pub seed: u64,
    pub params: Params,
    pub guest: HostConfig,
    pub peer: HostConfig,
    pub to_peer: PathConfig,
    pub to_guest: PathConfig,
    /// Losses between port and guest, as by a full queue of the tap.
    pub tap_loss_permille: u32,
    /// The peer's port, if the peer is a guest under vcc too.
    pub far: Option<Params>,
    /// Added to the initial counters of reports.
    pub counted_before: sys::vcc_feedback,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    Guest,
    Peer,
}

impl Side {
    fn other(self) -> Side {
        match self {
            Side::Guest => Side::Peer,
            Side::Peer => Side::Guest,
        }
    }
}

pub struct Sim {
    pub now_us: u64,
    pub steps: u64,
    rng: Rng,
    near: Port,
    far: Option<Port>,
    counted_before: sys::vcc_feedback,
    pub guest: Host,
    pub peer: Host,
    paths: [PathConfig; 2],
    tap_loss_permille: u32,
    /// Segments to the guest that are preceded by a forged one, per thousand.
    pub forged_permille: u32,
    pub forged: u64,
    /// When the link is free, per direction; connections may share a link.
    free_at: [Rc<Cell<u64>>; 2],
    /// (arrival, order, destination, index into `packets`)
    arrivals: BinaryHeap<Reverse<(u64, u64, Side, usize)>>,
    packets: Vec<Packet>,
    /// FNV-1a over all actions; the same seed must give the same digest.
    pub digest: u64,
    pub largest_cwnd_error_segs: i64,
}

impl Sim {
    pub fn new(scenario: Scenario) -> Self {
        Sim {
            now_us: START_US,
            steps: 0,
            rng: Rng::new(scenario.seed),
            near: Port::new(scenario.params, scenario.guest.opens),
            far: scenario.far.map(|params| Port::new(params, scenario.peer.opens)),
            counted_before: scenario.counted_before,
            guest: Host::new(scenario.guest),
            peer: Host::new(scenario.peer),
            paths: [scenario.to_guest, scenario.to_peer],
            tap_loss_permille: scenario.tap_loss_permille,
            forged_permille: 0,
            forged: 0,
            free_at: Default::default(),
            arrivals: BinaryHeap::new(),
            packets: Vec::new(),
            digest: 0xcbf2_9ce4_8422_2325,
            largest_cwnd_error_segs: 0,
        }
    }

    pub fn flow(&self) -> FlowState {
        self.near.flow()
    }

    /// The flow at the peer's port, if there is one.
    pub fn far_flow(&self) -> FlowState {
        self.far.as_ref().map(Port::flow).unwrap_or_default()
    }

    pub fn laws(&self) -> &Laws {
        &self.near.laws
    }

    pub fn far_laws(&self) -> Option<&Laws> {
        self.far.as_ref().map(|port| &port.laws)
    }

    fn port(&mut self, side: Side) -> Option<&mut Port> {
        match side {
            Side::Guest => Some(&mut self.near),
            Side::Peer => self.far.as_mut(),
        }
    }

    /// Shares the link to the peer with `other`.
    pub fn share_link(&mut self, other: &Sim) {
        self.free_at[Side::Peer as usize] = Rc::clone(&other.free_at[Side::Peer as usize]);
    }

    /// Current queueing delay to the peer.
    pub fn queue_us(&self) -> u64 {
        self.free_at[Side::Peer as usize].get().saturating_sub(self.now_us)
    }

    pub fn open(&mut self) {
        self.guest.open(self.now_us);
        self.peer.open(self.now_us);
        self.drain();
    }

    /// Runs until both streams are delivered, or the connection is reset.
    pub fn run(&mut self) {
        self.open();
        while !self.is_finished() {
            self.advance();
        }
    }

    /// Advances to the next event.
    pub fn advance(&mut self) {
        self.steps += 1;
        assert!(self.steps < STEPS_MAX, "no end within {STEPS_MAX} steps");
        let Some(next_us) = self.next_event() else {
            panic!("stalled: no packet in flight and no timer");
        };
        self.now_us = next_us.max(self.now_us);
        assert!(self.now_us < START_US + LONGEST_US, "stalled: no end within an hour");
        self.step();
    }

    pub fn is_finished(&self) -> bool {
        let reset = self.guest.stage == Stage::Reset || self.peer.stage == Stage::Reset;
        let done = |host: &Host| host.sent_all() && host.received_all();
        reset || (done(&self.guest) && done(&self.peer))
    }

    pub fn next_event(&self) -> Option<u64> {
        let arrival = self.arrivals.peek().map(|Reverse(arrival)| arrival.0);
        [arrival, self.guest.next_timer(), self.peer.next_timer()].into_iter().flatten().min()
    }

    fn step(&mut self) {
        for port in [Some(&mut self.near), self.far.as_mut()].into_iter().flatten() {
            if port.deadline_at <= self.now_us {
                port.deadline(self.now_us);
            }
        }
        match self.arrivals.peek() {
            Some(Reverse(arrival)) if arrival.0 <= self.now_us => {
                let Some(Reverse((_, _, side, index))) = self.arrivals.pop() else {
                    unreachable!("peeked")
                };
                let packet = self.packets[index];
                if side == Side::Guest
                    && self.guest.stage == Stage::Established
                    && self.rng.chance(self.forged_permille)
                {
                    let forged = self.forge(packet);
                    self.forged += 1;
                    self.host_gets(side, forged);
                }
                self.host_gets(side, packet);
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

    /// Passes the hosts' packets into the path.
    fn drain(&mut self) {
        for packet in std::mem::take(&mut self.guest.out) {
            self.host_sends(Side::Guest, packet);
        }
        for packet in std::mem::take(&mut self.peer.out) {
            self.host_sends(Side::Peer, packet);
        }
    }

    /// A host sends: through its port, if it has one, into the path.
    fn host_sends(&mut self, side: Side, mut packet: Packet) {
        let now_us = self.now_us;
        packet.segment.now_us = now_us;
        let Some(port) = self.port(side) else {
            self.enter(side.other(), packet);
            return;
        };
        let mut flow = port.flow();
        let action = flow.from_guest(&port.params, &packet.segment);
        port.laws.guest_sent(&port.flow(), &flow, &packet.segment, &action);
        is_as_strict(&port.flow(), &port.params, &packet.segment, false, &action);
        self.after_call(side, flow, &action);
        let fack = fack_beside(&packet, &action);
        rewrite(&mut packet, &action);
        // A shell may send the FACK before or after the segment.
        let first = fack.filter(|_| self.rng.chance(500));
        for piece in first.into_iter().chain(segmented(packet)) {
            self.enter(side.other(), piece);
        }
        if let (Some(fack), None) = (fack, first) {
            self.enter(side.other(), fack);
        }
    }

    /// A host receives: through its port, if it has one.
    fn host_gets(&mut self, side: Side, mut packet: Packet) {
        let now_us = self.now_us;
        packet.segment.now_us = now_us;
        if let Some(port) = self.port(side) {
            let mut flow = port.flow();
            let action = flow.to_guest(&port.params, &packet.segment);
            port.laws.guest_got(&port.flow(), &flow, &packet.segment, &action);
            is_as_strict(&port.flow(), &port.params, &packet.segment, true, &action);
            self.after_call(side, flow, &action);
            let lost = side == Side::Guest && self.rng.chance(self.tap_loss_permille);
            if u32::from(action.verdict) != sys::VCC_PASS || lost {
                return;
            }
            rewrite(&mut packet, &action);
            packet.segment.window = action.window;
        }
        match side {
            Side::Guest => self.guest.receive(now_us, &packet),
            Side::Peer => self.peer.receive(now_us, &packet),
        }
        // A FIN without payload is a segment to Linux and a byte to the engine.
        let native = self.guest.sender.native.as_ref().filter(|_| !self.guest.sent_fin());
        if let (Some(native), Side::Guest) = (native, side) {
            // The host has sent already, which does not change cwnd.
            let error_segs = (native.cwnd - i64::from(self.flow().cc.cwnd_segs)).abs();
            self.largest_cwnd_error_segs = self.largest_cwnd_error_segs.max(error_segs);
        }
    }

    fn after_call(&mut self, side: Side, mut flow: FlowState, action: &Action) {
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
        let (now_us, counted_before) = (self.now_us, self.counted_before);
        let Some(port) = self.port(side) else { return };
        let was_established = u32::from(port.flow().stage) >= sys::STAGE_ESTABLISHED;
        let is_established = u32::from(flow.stage) >= sys::STAGE_ESTABLISHED;
        if is_established && !was_established && flow.has(sys::FLOW_FEEDBACK) {
            for counters in [&mut flow.0.counted, &mut flow.0.heard] {
                counters.ect0_bytes = (counters.ect0_bytes + counted_before.ect0_bytes) & 0xff_ffff;
                counters.ce_bytes = (counters.ce_bytes + counted_before.ce_bytes) & 0xff_ffff;
            }
            port.laws.counted_before(counted_before);
        }
        port.after_call(now_us, flow, action);
    }
}
