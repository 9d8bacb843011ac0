//! A connection in virtual time: a guest, its port with the engine, a path, a peer.

mod host;
mod laws;
mod native;
mod ranges;
mod rng;

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

pub use host::{Host, HostConfig, Packet, Runts, Stage};
pub use laws::{Counts, Laws};
pub use rng::Rng;
use vcc_engine::{Action, FlowState, Params, Segment, sys};

/// The clock starts just before its 32-bit microseconds wrap.
const START_US: u64 = u32::MAX as u64 - 200_000;
/// Long enough for every transfer here, with all its timeouts.
const LONGEST_US: u64 = 3_600_000_000;
/// A transfer that needs more is stuck in a loop.
const STEPS_MAX: u64 = 400_000;

/// What only two vcc ends say to each other.
pub const OPT_OURS: u16 =
    (sys::OPT_HELLO | sys::OPT_PACK | sys::OPT_FACK | sys::OPT_OURS_BAD) as u16;

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
    /// One mark in so many bytes of payload, at random, so that runts take no more of them than
    /// their bytes' worth; 0: none.
    pub mark_each_bytes: u32,
    /// A queue in which a segment would wait for longer marks it; 0: it marks none.
    pub mark_above_us: u64,
    /// Up to so much more delay, at random.
    pub jitter_us: u64,
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
    /// The peer is a guest too, of a host with vcc.
    pub far: Option<Params>,
    /// What the counters of reports begin at, beyond what they begin at by themselves.
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

/// The port of one host, with the engine's state and the laws that it is watched by.
struct Port {
    params: Params,
    flow: Option<FlowState>,
    deadline_at: u64,
    laws: Laws,
}

impl Port {
    fn new(params: Params, opens: bool) -> Self {
        Port { params, flow: None, deadline_at: u64::MAX, laws: Laws::new(params, opens) }
    }

    fn flow(&self) -> FlowState {
        self.flow.unwrap_or_default()
    }

    /// Keeps the state. As a shell's timer would be, the deadline is set after each segment anew.
    fn after_call(&mut self, now_us: u64, flow: FlowState, action: &Action) {
        // No shell makes a flow of what is no SYN.
        let begun = u32::from(flow.stage) != sys::STAGE_NONE;
        self.flow = (action.forget == 0 && begun).then_some(flow);
        let mut probe = flow;
        let wait = probe.deadline(&self.params, now_us);
        self.deadline_at = now_us + u64::from(wait.deadline_ms) * 1000;
    }

    fn deadline(&mut self, now_us: u64) {
        let Some(before) = self.flow else { return };
        let mut flow = before;
        let action = flow.deadline(&self.params, now_us);
        self.laws.time_passed(&before, &flow, &action);
        self.flow = (action.forget == 0).then_some(flow);
        self.deadline_at = now_us + u64::from(action.deadline_ms.max(1)) * 1000;
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
    /// As many of a thousand segments for the guest bring a forged one with them.
    pub forged_permille: u32,
    pub forged: u64,
    /// When the link has sent all that waits; one direction of it may be several connections'.
    free_at: [Rc<Cell<u64>>; 2],
    /// (arrival, order, where, index into `packets`)
    arrivals: BinaryHeap<Reverse<(u64, u64, Side, usize)>>,
    packets: Vec<Packet>,
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

    /// The state at the peer's port, where there is one.
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

    /// Lets what goes to the peer queue behind that of `other`.
    pub fn share_link(&mut self, other: &Sim) {
        self.free_at[Side::Peer as usize] = Rc::clone(&other.free_at[Side::Peer as usize]);
    }

    /// How long what is sent to the peer now waits for its turn.
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

    /// To what happens next.
    pub fn advance(&mut self) {
        self.steps += 1;
        assert!(self.steps < STEPS_MAX, "no end after {STEPS_MAX} steps");
        let Some(next_us) = self.next_event() else {
            panic!("stalled: nothing is under way and no timer runs");
        };
        self.now_us = next_us.max(self.now_us);
        assert!(self.now_us < START_US + LONGEST_US, "stalled: an hour has passed");
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

    /// Carries what the hosts have sent into the path.
    fn drain(&mut self) {
        for packet in std::mem::take(&mut self.guest.out) {
            self.host_sends(Side::Guest, packet);
        }
        for packet in std::mem::take(&mut self.peer.out) {
            self.host_sends(Side::Peer, packet);
        }
    }

    /// Through the host's port, if it has one, into the path.
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
        self.after_call(side, flow, &action);
        let fack = fack_beside(&packet, &action);
        rewrite(&mut packet, &action);
        // A shell may make it before or after.
        let first = fack.filter(|_| self.rng.chance(500));
        for piece in first.into_iter().chain(segmented(packet)) {
            self.enter(side.other(), piece);
        }
        if let (Some(fack), None) = (fack, first) {
            self.enter(side.other(), fack);
        }
    }

    /// What somebody sends who knows addresses and ports, or a peer that only wants an answer: the
    /// guest takes none of it.
    fn forge(&mut self, packet: Packet) -> Packet {
        let has_ecn = self.flow().has(sys::FLOW_ECN_FABRIC);
        let mut forged = Packet { sack: (0, 0), ..packet };
        let segment = &mut forged.segment;
        segment.flags = sys::TCP_ACK as u16;
        segment.options &= !OPT_OURS & !(sys::OPT_SACK as u16);
        segment.payload_bytes = 0;
        segment.window = self.rng.next() as u16;
        let (far, marks) = (self.rng.range(1 << 28, 1 << 30) as u32, self.rng.chance(500));
        // A SYN behind both FINs is a new connection's, whoever sends it.
        let kinds = if u32::from(self.flow().stage) == sys::STAGE_CLOSED { 6 } else { 7 };
        match self.rng.range(0, kinds) {
            // RFC 9293, 3.8.4: a keepalive; the guest has acknowledged what it repeats.
            0 => segment.seq = self.guest.acknowledged_number().wrapping_sub(1),
            1 => segment.seq = segment.seq.wrapping_add(far),
            2 => segment.seq = segment.seq.wrapping_sub(far),
            3 => segment.ack = segment.ack.wrapping_add(far),
            4 => (segment.seq, segment.payload_bytes) = (segment.seq.wrapping_sub(far), 1000),
            5 => {
                segment.flags = sys::TCP_RST as u16;
                segment.seq = segment.seq.wrapping_add(far);
            }
            _ => {
                segment.flags = sys::TCP_SYN as u16;
                segment.seq = segment.seq.wrapping_add(far);
            }
        }
        if u32::from(segment.flags) == sys::TCP_ACK && marks {
            segment.flags |= sys::TCP_FIN as u16;
            if has_ecn {
                segment.ip_ecn = sys::IP_ECN_CE as u8;
                segment.flags |= (sys::TCP_ECE | sys::TCP_CWR) as u16;
            }
        }
        if u32::from(segment.flags) & sys::TCP_FIN != 0 && segment.payload_bytes == 0 {
            // So that a keepalive's FIN is as old as the rest of it.
            segment.seq = segment.seq.wrapping_sub(1);
        }
        forged
    }

    /// Through the host's port, if it has one, to the host.
    fn host_gets(&mut self, side: Side, mut packet: Packet) {
        let now_us = self.now_us;
        packet.segment.now_us = now_us;
        if let Some(port) = self.port(side) {
            let mut flow = port.flow();
            let action = flow.to_guest(&port.params, &packet.segment);
            port.laws.guest_got(&port.flow(), &flow, &packet.segment, &action);
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
        // A FIN of its own is a segment to Linux, and one byte to the engine.
        let native = self.guest.native.as_ref().filter(|_| !self.guest.sent_fin());
        if let (Some(native), Side::Guest) = (native, side) {
            // The host has sent already; its cwnd is as it was after the ACK.
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

    fn enter(&mut self, to: Side, mut packet: Packet) {
        let path = self.paths[to as usize];
        if self.rng.chance(path.loss_permille) {
            return;
        }
        let markable = packet.segment.ip_ecn != 0;
        let free_at = &self.free_at[to as usize];
        let leaves_us = self.now_us.max(free_at.get()) + path.spacing_us;
        let is_long = path.mark_above_us > 0 && leaves_us - self.now_us > path.mark_above_us;
        let by_bytes = path.mark_each_bytes > 0
            && self.rng.range(0, path.mark_each_bytes.into()) < packet.segment.payload_bytes.into();
        if markable && (is_long || by_bytes || self.rng.chance(path.mark_permille)) {
            packet.segment.ip_ecn = sys::IP_ECN_CE as u8;
        }
        free_at.set(leaves_us);
        let copies = 1 + u64::from(self.rng.chance(path.duplicate_permille));
        for _ in 0..copies {
            let mut arrives_us = leaves_us + path.delay_us;
            if path.jitter_us > 0 {
                arrives_us += self.rng.range(0, path.jitter_us);
            }
            if self.rng.chance(path.reorder_permille) {
                arrives_us += self.rng.range(100, 6000);
            }
            let order = self.packets.len();
            self.packets.push(packet);
            self.arrivals.push(Reverse((arrives_us, order as u64, to, order)));
        }
    }
}

/// Carries out what the engine decided about a packet's header.
fn rewrite(packet: &mut Packet, action: &Action) {
    let segment = &mut packet.segment;
    segment.flags = action.flags;
    segment.ip_ecn = action.ip_ecn;
    segment.mss = action.mss;
    segment.wscale = action.wscale;
    if action.strip != 0 {
        segment.options &= !OPT_OURS;
    }
    match u32::from(action.emit) {
        sys::EMIT_HELLO => {
            segment.options |= sys::OPT_HELLO as u16;
            segment.hello = action.hello;
        }
        sys::EMIT_PACK => {
            segment.options |= sys::OPT_PACK as u16;
            segment.feedback = action.feedback;
        }
        _ => {}
    }
}

/// The FACK that goes beside a packet: its header alone, acknowledging a byte less.
fn fack_beside(packet: &Packet, action: &Action) -> Option<Packet> {
    let whole = packet.segment;
    let segment = Segment {
        now_us: whole.now_us,
        seq: whole.seq,
        ack: whole.ack.wrapping_sub(1),
        window: whole.window,
        flags: sys::TCP_ACK as u16,
        options: sys::OPT_FACK as u16,
        feedback: action.feedback,
        ip_ecn: action.ip_ecn,
        ..Segment::default()
    };
    let wanted = u32::from(action.emit) == sys::EMIT_FACK;
    wanted.then_some(Packet { segment, sack: (0, 0) })
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
