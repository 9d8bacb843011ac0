//! Two captures of the same connections, on the two sides of a port: what vcc has changed.
//!
//! [`Comparison`] pairs the segments of both sides, compares each field and each byte of payload, and counts
//! the changes that docs/translation.md names. Each other difference is an error. Super-segments are
//! compared with their parts by ranges of sequence numbers.
//!
//! Segments wait for their counterparts within a bound. Both files are read in step, so that few wait.

mod captured;
mod change;
mod connection;
mod counts;
mod delays;
mod difference;
mod face;
mod field;
mod files;
mod headers;
mod lane;
mod likeness;
mod median;
mod order;
mod pairs;
mod payload;
mod rest;
mod room;
#[cfg(test)]
mod testing;

use std::collections::HashMap;

use vcc_domain::Frame;

use crate::packet::Packet;
use crate::segment::Segment;
use crate::sides::IsGuest;
use crate::whole_frame::whole;
use captured::Captured;
use connection::{Ends, Watched, ends};
use lane::Fate;
use order::Order;
use pairs::Pairs;
use room::{LaneKey, Room};

pub use crate::port_side::PortSide;
pub use change::{Change, Changes};
pub use counts::{Alone, Counts};
pub use delays::Delays;
pub use difference::Difference;
pub use face::{ByDirection, ByFace, Direction, Face};
pub use field::Field;
pub use files::{read_in_step, recorded_devices};
pub use payload::PayloadCounts;
pub use room::WAITING_MAX_BYTES;

/// What one file has shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub packets: u64,
    pub segments: u64,
    /// Not TCP, fragments, or malformed: such packets are not compared.
    pub unread: u64,
    /// Cut within the headers, by the capture's snapshot length.
    pub cut: u64,
    /// Between two ends of which neither is a guest.
    pub others: u64,
    /// Of connections that were left out because of the limit.
    pub left_out: u64,
}

/// A connection, and what was found.
#[derive(Clone, Debug)]
pub struct Compared {
    pub guest: std::net::SocketAddr,
    pub peer: std::net::SocketAddr,
    pub has_syn: bool,
    pub counts: Counts,
}

/// What two files have shown.
pub struct Outcome {
    pub seen: ByFace<Seen>,
    /// In the order in which they began.
    pub connections: Vec<Compared>,
    pub total: Counts,
    /// The first errors.
    pub differences: Vec<Difference>,
    pub delays: Delays,
}

/// Compares the segments of two captures.
pub struct Comparison {
    max_connections: usize,
    is_guest: Option<Box<IsGuest>>,
    connections: Vec<Watched>,
    /// Of the same two ends, there is one for each VLAN.
    places: HashMap<Ends, Vec<usize>>,
    room: Room,
    order: Order,
    pairs: Pairs,
    seen: ByFace<Seen>,
    is_over: ByFace<bool>,
}

impl Comparison {
    /// Of at most `max_connections`. `is_guest` judges ends; without it, the opener of each connection is its
    /// guest.
    pub fn new(max_connections: usize, is_guest: Option<Box<IsGuest>>) -> Self {
        let (connections, places, room, order, pairs, seen, is_over) = Default::default();
        Self { max_connections, is_guest, connections, places, room, order, pairs, seen, is_over }
    }

    /// The side whose next packet should be taken, by the times of both; None for a file that has ended.
    pub fn next(&self, times_ns: ByFace<Option<u64>>) -> Option<Face> {
        self.order.next(times_ns, |face| self.room.is_full(face))
    }

    /// No packet of this side follows.
    pub fn close(&mut self, face: Face) {
        self.is_over[face] = true;
    }

    /// Takes the next packet of a side.
    pub fn take(&mut self, face: Face, packet: &mut Packet) {
        self.seen[face].packets += 1;
        let captured_bytes = packet.frame.len();
        let frame = whole(packet);
        self.read(face, &frame, captured_bytes, packet);
        packet.frame = frame.bytes;
    }

    fn read(&mut self, face: Face, frame: &Frame, captured_bytes: usize, packet: &Packet) {
        let seen = &mut self.seen[face];
        let Some(header) = frame.tcp_header() else {
            seen.unread += 1;
            return;
        };
        if captured_bytes < header.end {
            seen.cut += 1;
            return;
        }
        let ends = Segment::read(frame, &header);
        let captured = Captured::read(frame, &header, captured_bytes);
        let (offset, time_ns) = (packet.offset, packet.time_ns);
        let captured = Captured { offset, time_ns, ..captured };
        self.pass(face, &ends, captured, packet.from_guest);
    }

    fn pass(
        &mut self,
        face: Face,
        segment: &Segment,
        mut captured: Captured,
        from_guest: Option<bool>,
    ) {
        let (ends, from_first) = ends(segment);
        let [from_mac, to_mac] = segment.macs;
        let macs = if from_first { [from_mac, to_mac] } else { [to_mac, from_mac] };
        let by_recording = from_guest.map(|it| [from_first == it, from_first != it]);
        let named = self
            .is_guest
            .as_ref()
            .map(|is_guest| [is_guest(ends.0, macs[0]), is_guest(ends.1, macs[1])])
            .or(by_recording);
        if named == Some([false, false]) {
            self.seen[face].others += 1;
            return;
        }
        let Some(connection) = self.connection(face, ends, segment.vlan, named) else {
            self.seen[face].left_out += 1;
            return;
        };
        self.seen[face].segments += 1;
        let watched = &mut self.connections[connection];
        watched.note(face, from_first, &mut captured, segment.vlan);
        let key = LaneKey { connection, from_first };
        let (pairs, order) = (&mut self.pairs, &mut self.order);
        pairs.take(watched, key, face, captured, &mut self.room, order);
        for side in Face::BOTH {
            self.release_overtaken(side, key);
            self.make_room(side);
        }
    }

    /// The connection's index; None for one too many.
    fn connection(
        &mut self,
        face: Face,
        ends: Ends,
        vlan: Option<u16>,
        named: Option<[bool; 2]>,
    ) -> Option<usize> {
        let known = self.places.get(&ends).map_or(&[][..], |indices| indices);
        let has_vlan = |index: &&usize| self.connections[**index].has_vlan(face, vlan);
        if let Some(index) = known.iter().find(has_vlan) {
            return Some(*index);
        }
        let index = self.connections.len();
        if index >= self.max_connections {
            return None;
        }
        self.connections.push(Watched::new(index, ends, named));
        self.places.entry(ends).or_default().push(index);
        Some(index)
    }

    fn release_overtaken(&mut self, face: Face, key: LaneKey) {
        let watched = &mut self.connections[key.connection];
        while let Some(waiting) = watched.lane(key).take_overtaken(face, &mut self.room) {
            self.pairs.release(watched, key, face, waiting, Fate::Alone, &mut self.room);
        }
    }

    fn make_room(&mut self, face: Face) {
        let is_needed = |comparison: &Self| {
            let other = face.other();
            comparison.room.is_full(face)
                && (comparison.room.is_full(other) || comparison.is_over[other])
        };
        while is_needed(self) {
            let Some(key) = self.room.oldest(face) else { return };
            self.release_first(face, key);
        }
    }

    fn release_first(&mut self, face: Face, key: LaneKey) -> Option<()> {
        let watched = &mut self.connections[key.connection];
        let (waiting, fate) = watched.lane(key).take_first(face, &mut self.room)?;
        let fate = if self.is_over[face.other()] { Fate::Alone } else { fate };
        self.pairs.release(watched, key, face, waiting, fate, &mut self.room);
        Some(())
    }

    /// What still waits has no counterpart.
    pub fn end(mut self) -> Outcome {
        self.is_over = ByFace { guest: true, fabric: true };
        for face in Face::BOTH {
            while let Some(key) = self.room.oldest(face) {
                self.release_first(face, key);
            }
        }
        let mut total = Counts::default();
        self.connections.iter().for_each(|watched| total.add(&watched.counts));
        let compared = |watched: Watched| {
            let (guest, peer) = watched.guest_and_peer();
            Compared { guest, peer, has_syn: watched.has_syn, counts: watched.counts }
        };
        let connections = self.connections.into_iter().map(compared).collect();
        let (differences, delays) = self.pairs.end();
        Outcome { seen: self.seen, connections, total, differences, delays }
    }
}
