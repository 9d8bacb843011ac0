//! Two hosts, each behind a port, and a path between them that delays and marks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use vcc_domain::{Frame, Port, Verdict};
use vcc_engine::{Params, sys};
use vcc_frames::mark_ce;
use vcc_frames::wire::{ETHERNET_BYTES, ETHERTYPE_IPV4, IPV4_BYTES};

use crate::host::Host;

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
}

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

/// The time, the order among frames of the same time, the destination and the frame.
type Arrival = (u64, u64, Side, Vec<u8>);

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
}

impl Network {
    pub fn new(hosts: [Host; 2], mark_every: u32, params: Params) -> Self {
        // The peer's port gives it ECN, without reports, so that it is like a plain peer.
        let plain = Params(sys::vcc_params { feedback: 0, ..params.0 });
        Network {
            now_us: 0,
            hosts,
            ports: [Port::new(params, FLOWS_MAX), Port::new(plain, FLOWS_MAX)],
            markers: [mark_every; 2].map(Marker::new),
            wire_free_us: [0; 2],
            largest_bytes: [0; 2],
            under_way: BinaryHeap::new(),
            sent: 0,
        }
    }

    pub fn connect(&mut self, opener: Side, sender: Side) {
        self.hosts[opener.other() as usize].listen();
        self.hosts[opener as usize].open();
        self.hosts[sender as usize].send();
    }

    pub fn received_bytes(&self, side: Side) -> u64 {
        self.hosts[side as usize].received_bytes
    }

    pub fn largest_segment_bytes(&self, sender: Side) -> usize {
        self.largest_bytes[sender as usize]
    }

    pub fn run_until(&mut self, end_us: u64) {
        while self.now_us < end_us {
            for side in Side::BOTH {
                for frame in self.hosts[side as usize].work(self.now_us) {
                    self.leave(side, frame);
                }
            }
            self.now_us = self.next_us().clamp(self.now_us, end_us);
            for side in Side::BOTH {
                let mut to_guest = Vec::new();
                self.ports[side as usize].advance(self.now_us * NS_PER_US, &mut to_guest);
                for frame in to_guest {
                    self.hosts[side as usize].receive(frame.bytes);
                }
            }
            while self.under_way.peek().is_some_and(|Reverse(next)| next.0 <= self.now_us) {
                let Some(Reverse((_, _, side, bytes))) = self.under_way.pop() else { break };
                self.arrive(side, bytes);
            }
        }
    }

    fn next_us(&mut self) -> u64 {
        let now_us = self.now_us;
        let arrival_us = self.under_way.peek().map(|Reverse(next)| next.0);
        let works_us = self.hosts.iter_mut().filter_map(|host| host.next_work_us(now_us));
        let ports_us = self.ports.iter().filter_map(Port::next_deadline_ns);
        let ports_us = ports_us.map(|at_ns| at_ns.div_ceil(NS_PER_US));
        works_us.chain(ports_us).chain(arrival_us).min().expect("somebody waits for something")
    }

    /// Sends a frame of a host through its port onto the wire.
    fn leave(&mut self, side: Side, bytes: Vec<u8>) {
        let largest_bytes = &mut self.largest_bytes[side as usize];
        *largest_bytes = tcp_payload_bytes(&bytes).max(*largest_bytes);
        let (mut frame, mut also) = (Frame::full(bytes), Vec::new());
        let port = &mut self.ports[side as usize];
        if port.from_guest(self.now_us * NS_PER_US, &mut frame, &mut also) == Verdict::Drop {
            return;
        }
        for mut frame in std::iter::once(frame).chain(also) {
            self.mark(side, &mut frame.bytes);
            let wire_free_us = &mut self.wire_free_us[side as usize];
            *wire_free_us = self.now_us.max(*wire_free_us) + SPACING_US;
            self.sent += 1;
            let arrives_us = *wire_free_us + DELAY_US;
            self.under_way.push(Reverse((arrives_us, self.sent, side.other(), frame.bytes)));
        }
    }

    fn arrive(&mut self, side: Side, bytes: Vec<u8>) {
        let mut frame = Frame::full(bytes);
        let port = &mut self.ports[side as usize];
        if port.to_guest(self.now_us * NS_PER_US, &mut frame) == Verdict::Pass {
            self.hosts[side as usize].receive(frame.bytes);
        }
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
