//! Two hosts, each behind a port, and a path between them that delays, marks and impairs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use vcc_domain::{Frame, Out, Port, Promise, ReceiveRing, Verdict};
use vcc_engine::{Params, sys};
use vcc_frames::mark_ce;
use vcc_frames::wire::{ETHERNET_BYTES, ETHERTYPE_IPV4, IPV4_BYTES};

use crate::common::promises::Promises;
use crate::common::rng::Rng;
use crate::common::segment::Segment;
use crate::common::watch::Watch;
use crate::host::{Host, Setup};

/// The one-way delay.
pub const DELAY_US: u64 = 10_000;
/// The serialisation delay of a segment.
pub const SPACING_US: u64 = 12;
const FLOWS_MAX: usize = 4;
const NS_PER_US: u64 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    Guest,
    Peer,
}

impl Side {
    pub const BOTH: [Side; 2] = [Side::Guest, Side::Peer];

    pub fn other(self) -> Side {
        if self == Side::Guest { Side::Peer } else { Side::Guest }
    }

    /// Of its stream ([`crate::common::watch::pattern`]).
    pub fn salt(self) -> u8 {
        self as u8 * 0x5a
    }
}

/// What the path does to TCP segments, in either direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Impairments {
    pub loss_permille: u32,
    pub duplicate_permille: u32,
    /// A reordered segment arrives up to `REORDER_MAX_US` late.
    pub reorder_permille: u32,
}

const REORDER_MAX_US: u64 = 500;

/// Marks one in `every` segments. The distance between marks is randomised, with a fixed seed, from
/// half to one and a half times the mean, or windows would synchronise with them.
pub struct Marker {
    every: u32,
    left: u32,
    state: u32,
}

impl Marker {
    pub fn new(every: u32) -> Self {
        Marker { every, left: every, state: 1 }
    }

    /// Whether the next segment is marked.
    pub fn next(&mut self) -> bool {
        self.left -= 1;
        if self.left > 0 {
            return false;
        }
        // xorshift32.
        for (left, by) in [(true, 13), (false, 17), (true, 5)] {
            self.state ^= if left { self.state << by } else { self.state >> by };
        }
        self.left = (self.every / 2 + self.state % (self.every + 1)).max(1);
        true
    }
}

/// The guest shares its core: it runs for a moment in each turn.
#[derive(Clone, Copy, Debug)]
pub struct Turns {
    pub every_us: u64,
    pub runs_us: u64,
}

impl Turns {
    /// The next time from `now_us` on at which it runs.
    fn next_us(self, now_us: u64) -> u64 {
        match now_us % self.every_us {
            into_us if into_us < self.runs_us => now_us,
            into_us => now_us - into_us + self.every_us,
        }
    }
}

/// The time, the order among frames of the same time, the destination and the frame.
type Arrival = (u64, u64, Side, Vec<u8>);

/// Chooses segments.
type Chosen = fn(&Segment) -> bool;

pub struct Network {
    now_us: u64,
    hosts: [Host; 2],
    ports: [Port; 2],
    /// For each host: the marker of its direction, the time when its wire is free, and the payload
    /// of its largest segment.
    markers: [Marker; 2],
    wire_free_us: [u64; 2],
    largest_bytes: [usize; 2],
    under_way: BinaryHeap<Reverse<Arrival>>,
    sent: u64,
    pub impairments: Impairments,
    rng: Rng,
    /// Checks the laws at the guest's port, if that holds.
    pub watch: Option<Watch>,
    /// Of the guest's port.
    pub held_max_bytes: u32,
    /// Checks the laws at the guest's port, if that snoops.
    pub promises: Option<Promises>,
    pub turns: Option<Turns>,
    /// The guest's receive ring.
    pub ring_frames: usize,
    /// Frames that it had no room for, and that the guest discards though they were in it.
    pub missed_frames: u64,
    pub discards_permille: u32,
    pub discards: Option<Chosen>,
    /// Those that lie in its ring.
    discarded_frames: usize,
    /// The next frame from this side to meet the condition is lost.
    pub loses_next: Option<(Side, Chosen)>,
}

impl Network {
    pub fn new(hosts: [Host; 2], mark_every: u32, params: Params) -> Self {
        // The peer's port gives it ECN, without reports, so that it is like a plain peer.
        let plain =
            sys::vcc_params { feedback: 0, act: sys::ACT_WINDOW as u8, receive: 0, ..params.0 };
        let plain = Params(plain);
        let (act, receive) = (u32::from(params.0.act), u32::from(params.0.receive));
        let watch = || {
            let mut watch = Watch::new(Side::Guest.salt());
            watch.splits = act == sys::ACT_SPLIT;
            watch
        };
        Network {
            now_us: 0,
            hosts,
            ports: [Port::new(params, FLOWS_MAX), Port::new(plain, FLOWS_MAX)],
            markers: [mark_every; 2].map(Marker::new),
            wire_free_us: [0; 2],
            largest_bytes: [0; 2],
            under_way: BinaryHeap::new(),
            sent: 0,
            impairments: Impairments::default(),
            rng: Rng::new(0),
            // It compares the guest's numbers with those on the wire.
            watch: (act != sys::ACT_WINDOW && receive != sys::RECEIVE_ACCEPT).then(watch),
            held_max_bytes: 0,
            promises: (receive != sys::RECEIVE_GUEST).then(|| promises_of(receive)),
            turns: None,
            ring_frames: if params.0.receive != 0 { 256 } else { usize::MAX },
            missed_frames: 0,
            discards_permille: 0,
            discards: None,
            discarded_frames: 0,
            loses_next: None,
        }
    }

    /// Impairs the path, by a seed.
    pub fn impair(&mut self, seed: u64, impairments: Impairments) {
        self.rng = Rng::new(seed);
        self.impairments = impairments;
    }

    pub fn connect(&mut self, opener: Side) {
        self.hosts[opener.other() as usize].listen();
        self.hosts[opener as usize].open();
    }

    /// Both hosts forget their connection, and all frames under way are lost.
    pub fn renew_hosts(&mut self, setups: [Setup; 2]) {
        for (host, setup) in self.hosts.iter_mut().zip(setups) {
            host.renew(setup);
        }
        self.under_way.clear();
        let receive = self.port().params().0.receive.into();
        self.promises = self.promises.take().map(|_| promises_of(receive));
    }

    pub fn host(&mut self, side: Side) -> &mut Host {
        &mut self.hosts[side as usize]
    }

    /// The guest's port.
    pub fn port(&mut self) -> &mut Port {
        &mut self.ports[Side::Guest as usize]
    }

    /// The peer's port holds, too.
    pub fn hold_peer(&mut self) {
        let port = &mut self.ports[Side::Peer as usize];
        let act = sys::ACT_HOLD as u8;
        port.set_params(Params(sys::vcc_params { act, ..port.params().0 }));
    }

    /// Another port, which knows nothing, takes the place of the guest's.
    pub fn replace_port(&mut self, params: Params) {
        self.replace_port_of(params, Vec::new());
    }

    /// And ends what is left of the promises of the one before.
    pub fn replace_port_of(&mut self, params: Params, promises: Vec<Promise>) {
        let now_ns = self.now_us * NS_PER_US;
        *self.port() = Port::new(params, FLOWS_MAX);
        let mut out = Out::default();
        self.port().end_promises(now_ns, promises, &mut out);
        self.forward(Side::Guest, out);
        if let Some(watch) = &mut self.watch {
            watch.windows = false;
        }
    }

    /// The guest's port ends in order.
    pub fn end_port(&mut self) {
        let (now_ns, mut out) = (self.now_us * NS_PER_US, Out::default());
        self.port().end(now_ns, &mut out);
        self.forward(Side::Guest, out);
    }

    /// The guest stops and continues behind another port after a pause, with the first port's state
    /// of its connections. What arrives meanwhile is lost.
    pub fn move_guest(&mut self, mut next: Port, pause_us: u64) {
        let mut out = Out::default();
        let before_ns = self.now_us * NS_PER_US;
        self.port().end_waits(before_ns, &mut out);
        self.forward(Side::Guest, out);
        let (connections, state) = self.port().hand_over("a test", std::iter::empty());
        assert_eq!(connections, 1);
        self.now_us += pause_us;
        let (now_us, all) = (self.now_us, std::mem::take(&mut self.under_way));
        let is_lost = |arrival: &Arrival| arrival.2 == Side::Guest && arrival.0 < now_us;
        self.under_way = all.into_iter().filter(|Reverse(it)| !is_lost(it)).collect();
        // Its clock is another one.
        let arrived = next.take_over(self.now_us * NS_PER_US, &state).expect("a state");
        assert_eq!((arrived.connections, arrived.waiting.len()), (1, 0));
        let had = (self.port().held_bytes(), self.port().promised_bytes());
        assert_eq!((next.held_bytes(), next.promised_bytes()), had);
        *self.port() = next;
        self.tell_room(Side::Guest);
        let mut out = Out::default();
        self.port().go_on(now_us * NS_PER_US, &mut out);
        self.forward(Side::Guest, out);
    }

    pub fn now_us(&self) -> u64 {
        self.now_us
    }

    pub fn received_bytes(&self, side: Side) -> u64 {
        self.hosts[side as usize].received_bytes
    }

    pub fn largest_segment_bytes(&self, sender: Side) -> usize {
        self.largest_bytes[sender as usize]
    }

    pub fn run_until(&mut self, end_us: u64) {
        while self.now_us < end_us {
            self.step(end_us);
        }
    }

    /// Runs until the condition is met, or the end; returns whether it was met.
    pub fn run_until_met(&mut self, end_us: u64, mut met: impl FnMut(&mut Self) -> bool) -> bool {
        while self.now_us < end_us {
            if met(self) {
                return true;
            }
            self.step(end_us);
        }
        met(self)
    }

    fn step(&mut self, end_us: u64) {
        for side in Side::BOTH {
            if !self.runs(side) {
                continue;
            }
            for frame in self.hosts[side as usize].work(self.now_us) {
                self.leave(side, frame);
            }
            if side == Side::Guest {
                self.discarded_frames = 0;
            }
            self.tell_room(side);
        }
        self.now_us = self.next_us().unwrap_or(end_us).clamp(self.now_us, end_us);
        for side in Side::BOTH {
            let mut out = Out::default();
            self.ports[side as usize].advance(self.now_us * NS_PER_US, &mut out);
            self.forward(side, out);
        }
        while self.under_way.peek().is_some_and(|Reverse(next)| next.0 <= self.now_us) {
            let Some(Reverse((_, _, side, bytes))) = self.under_way.pop() else { break };
            self.arrive(side, bytes);
        }
    }

    fn runs(&self, side: Side) -> bool {
        side == Side::Peer
            || self.turns.is_none_or(|turns| turns.next_us(self.now_us) == self.now_us)
    }

    fn free_segs(&self, side: Side) -> u32 {
        let unread_frames = self.hosts[side as usize].unread_frames() + self.discarded_frames;
        self.ring_frames.saturating_sub(unread_frames).min(1 << 16) as u32
    }

    fn tell_room(&mut self, side: Side) {
        let size_segs = self.ring_frames.min(1 << 16) as u32;
        let ring = ReceiveRing { size_segs, free_segs: self.free_segs(side), behind_segs: 0 };
        let mut out = Out::default();
        self.ports[side as usize].set_room(self.now_us * NS_PER_US, ring, &mut out);
        self.forward(side, out);
    }

    /// Puts a frame into a host's ring, if that has room. Returns whether it has.
    fn place(&mut self, side: Side, bytes: Vec<u8>) -> bool {
        if side == Side::Guest && self.free_segs(side) == 0 {
            self.missed_frames += 1;
            return false;
        }
        let chosen = Segment::read(&bytes).zip(self.discards).is_some_and(|(it, of)| of(&it));
        // Not drawn for others, whose seeds must not mean something else.
        let may = side == Side::Guest && self.discards_permille > 0;
        match side == Side::Guest && chosen || may && self.rng.chance(self.discards_permille) {
            true => self.discarded_frames += 1,
            false => self.hosts[side as usize].receive(bytes),
        }
        true
    }

    /// None: nobody waits for anything.
    fn next_us(&mut self) -> Option<u64> {
        let now_us = self.now_us;
        let arrival_us = self.under_way.peek().map(|Reverse(next)| next.0);
        let (turns, discarded_frames) = (self.turns, self.discarded_frames);
        let works_us = self.hosts.iter_mut().zip(Side::BOTH).filter_map(|(host, side)| {
            let works_us = host.next_work_us(now_us);
            let Some(turns) = turns.filter(|_| side == Side::Guest) else { return works_us };
            let reads_us = (host.unread_frames() + discarded_frames > 0).then_some(now_us);
            let wants_us = reads_us.or(works_us)?;
            Some(turns.next_us(wants_us.max(now_us + 1)))
        });
        let ports_us = self.ports.iter().filter_map(Port::next_deadline_ns);
        let ports_us = ports_us.map(|at_ns| at_ns.div_ceil(NS_PER_US));
        works_us.chain(ports_us).chain(arrival_us).min()
    }

    /// Sends a frame of a host through its port onto the wire.
    fn leave(&mut self, side: Side, bytes: Vec<u8>) {
        let largest_bytes = &mut self.largest_bytes[side as usize];
        *largest_bytes = tcp_payload_bytes(&bytes).max(*largest_bytes);
        if let Some(watch) = self.watch.as_mut().filter(|_| side == Side::Guest) {
            watch.see_from_guest(&bytes);
        }
        if let Some(promises) = self.promises.as_mut().filter(|_| side == Side::Guest) {
            promises.see_from_guest(&bytes);
        }
        let (mut frame, mut out) = (Frame::full(bytes), Out::default());
        let port = &mut self.ports[side as usize];
        if port.from_guest(self.now_us * NS_PER_US, &mut frame, &mut out) == Verdict::Pass {
            out.to_fabric.insert(0, frame);
        }
        self.forward(side, out);
    }

    /// Forwards the frames of a host's port.
    fn forward(&mut self, side: Side, out: Out) {
        if side == Side::Guest {
            let port = &self.ports[side as usize];
            self.held_max_bytes = self.held_max_bytes.max(port.held_bytes());
            if let Some(watch) = &mut self.watch {
                out.to_fabric.iter().for_each(|frame| watch.leaves(port, frame));
                out.to_guest.iter().for_each(|frame| watch.see_to_guest(port, frame, false));
            }
            if let Some(promises) = &mut self.promises {
                out.to_fabric.iter().for_each(|frame| promises.leaves(&frame.bytes, false));
            }
        }
        for frame in out.to_fabric {
            self.transmit(side, frame.bytes);
        }
        let answered = !out.to_guest.is_empty();
        for frame in out.to_guest {
            self.place(side, frame.bytes);
        }
        if answered {
            self.tell_room(side);
        }
    }

    /// Puts a frame onto a host's wire.
    fn transmit(&mut self, side: Side, mut bytes: Vec<u8>) {
        self.mark(side, &mut bytes);
        let wire_free_us = &mut self.wire_free_us[side as usize];
        *wire_free_us = self.now_us.max(*wire_free_us) + SPACING_US;
        let mut arrives_us = *wire_free_us + DELAY_US;
        if let Some(segment) = Segment::read(&bytes) {
            if self.loses_next.is_some_and(|(from, lost)| from == side && lost(&segment)) {
                self.loses_next = None;
                return;
            }
            let Impairments { loss_permille, duplicate_permille, reorder_permille } =
                self.impairments;
            if self.rng.chance(loss_permille) {
                return;
            }
            if self.rng.chance(reorder_permille) {
                arrives_us += self.rng.range(0, REORDER_MAX_US);
            }
            if self.rng.chance(duplicate_permille) {
                self.sent += 1;
                let again_us = arrives_us + self.rng.range(0, REORDER_MAX_US);
                self.under_way.push(Reverse((again_us, self.sent, side.other(), bytes.clone())));
            }
        }
        self.sent += 1;
        self.under_way.push(Reverse((arrives_us, self.sent, side.other(), bytes)));
    }

    fn arrive(&mut self, side: Side, bytes: Vec<u8>) {
        if let Some(watch) = self.watch.as_mut().filter(|_| side == Side::Guest) {
            watch.see_from_peer(&bytes);
        }
        let promises = self.promises.as_mut().filter(|it| it.buffers && side == Side::Guest);
        if let Some(promises) = promises {
            promises.see_placed(&bytes);
        }
        let (mut frame, mut out) = (Frame::full(bytes), Out::default());
        let port = &mut self.ports[side as usize];
        let (verdict, receipt) = port.to_guest(self.now_us * NS_PER_US, &mut frame, &mut out);
        if verdict == Verdict::Pass {
            if let Some(watch) = self.watch.as_mut().filter(|_| side == Side::Guest) {
                watch.see_to_guest(port, &frame, false);
            }
            if self.place(side, frame.bytes.clone()) {
                if let Some(promises) = self.promises.as_mut().filter(|_| side == Side::Guest) {
                    promises.see_placed(&frame.bytes);
                }
                self.tell_room(side);
                let port = &mut self.ports[side as usize];
                port.placed(self.now_us * NS_PER_US, frame, receipt, &mut out);
            }
        }
        self.forward(side, out);
    }

    /// Marks the frame if it is ECN-capable and its turn.
    fn mark(&mut self, from: Side, bytes: &mut [u8]) {
        let Some(ip) = ipv4_header(bytes) else { return };
        if u32::from(ip[1] & 3) != sys::IP_ECN_ECT_0 {
            return;
        }
        if self.markers[from as usize].next() {
            mark_ce(ip);
        }
    }
}

fn promises_of(receive: sys::vcc_receive) -> Promises {
    let mut promises = Promises::default();
    promises.buffers = receive >= sys::RECEIVE_BUFFER;
    promises
}

fn ipv4_header(frame: &mut [u8]) -> Option<&mut [u8]> {
    let is_ipv4 = frame.get(12..ETHERNET_BYTES)? == ETHERTYPE_IPV4.to_be_bytes();
    frame.get_mut(ETHERNET_BYTES..ETHERNET_BYTES + IPV4_BYTES).filter(|_| is_ipv4)
}

fn tcp_payload_bytes(frame: &[u8]) -> usize {
    let tcp_at = ETHERNET_BYTES + IPV4_BYTES;
    match frame.get(tcp_at + 12) {
        Some(offset) if frame[12..ETHERNET_BYTES] == ETHERTYPE_IPV4.to_be_bytes() => {
            let total_bytes = usize::from(u16::from_be_bytes([frame[16], frame[17]]));
            total_bytes.saturating_sub(IPV4_BYTES + usize::from(offset >> 4) * 4)
        }
        _ => 0,
    }
}
