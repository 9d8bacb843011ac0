//! From the wire to the guest.

use std::io;

use vcc_domain::{Frame, Out, Room, Verdict};

use super::{BATCH, Device, Rings};
use crate::features::Features;
use crate::header::{HEADER_BYTES, Header};
use crate::rings::{self, Placed};
use crate::wake::now_ns;
use crate::wire::Offload;

/// Frames that wait for the guest's buffers. More wait in the wire's queue.
const WAITING_MAX: usize = 1024;

/// A frame for the guest.
pub(super) struct Arrival {
    header: Header,
    frame: Frame,
    /// The port has passed it, and is told when it lies in the guest's ring.
    is_from_fabric: bool,
}

impl Arrival {
    /// One that the port has made.
    pub(super) fn of_port(header: Header, frame: Frame) -> Self {
        Arrival { header, frame, is_from_fabric: false }
    }
}

impl Device {
    /// A guest without buffers leaves the frames where they are. True if more may wait.
    pub(super) fn receive(&mut self, rings: &mut Rings) -> bool {
        if rings.receiving().next().is_none() {
            return false;
        }
        for _ in 0..BATCH {
            if self.waiting.len() >= WAITING_MAX {
                return false;
            }
            let bytes = match self.wire.receive(&mut self.read) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) if error.kind() == io::ErrorKind::NotConnected => {
                    self.is_wire_gone = true;
                    return false;
                }
                Err(_) => {
                    self.counts.wire_failed += 1;
                    continue;
                }
            };
            let Some((header, bytes)) = self.read[..bytes].split_first_chunk::<HEADER_BYTES>()
            else {
                self.counts.wire_failed += 1;
                continue;
            };
            let header = Header::read(header);
            let mut memory = std::mem::take(&mut self.to_guest);
            memory.clear();
            memory.extend_from_slice(bytes);
            let mut frame = header.frame(memory);
            let mut out = Out::default();
            let verdict = self.port.to_guest(now_ns(), &mut frame, &mut out);
            if verdict == Verdict::Pass {
                let header = header.passed(&frame);
                let arrival = Arrival { header, frame, is_from_fabric: true };
                self.hand_over(arrival, rings, &mut out);
            } else {
                self.to_guest = frame.bytes;
            }
            self.forward(out, rings);
        }
        true
    }

    /// Gives the guest a frame, or keeps it until the guest has room. `out` receives what the port
    /// lets go when the frame lies in the guest's ring.
    pub(super) fn hand_over(&mut self, arrival: Arrival, rings: &mut Rings, out: &mut Out) {
        if !arrival.header.within(Offload::of(self.features)) {
            self.counts.not_negotiated += 1;
            return;
        }
        if self.waiting.is_empty() {
            match self.place(&arrival, rings) {
                Placed::Yes => return self.placed(arrival, rings, out),
                Placed::Bad => return,
                Placed::NoBuffer => {}
            }
        }
        if self.waiting.len() >= 2 * WAITING_MAX {
            self.counts.no_buffer += 1;
            return;
        }
        self.waiting.push_back(arrival);
    }

    pub(super) fn hand_over_waiting(&mut self, rings: &mut Rings) -> bool {
        for _ in 0..BATCH {
            let Some(arrival) = self.waiting.pop_front() else { return false };
            match self.place(&arrival, rings) {
                Placed::Yes => {
                    let mut out = Out::default();
                    self.placed(arrival, rings, &mut out);
                    self.forward(out, rings);
                }
                Placed::Bad => {}
                Placed::NoBuffer => {
                    self.waiting.push_front(arrival);
                    return false;
                }
            }
        }
        !self.waiting.is_empty()
    }

    /// The frame lies in the guest's memory, which outlives this process: the port may acknowledge
    /// it.
    fn placed(&mut self, arrival: Arrival, rings: &Rings, out: &mut Out) {
        if arrival.is_from_fabric && self.port.snoops() {
            self.port.set_room(now_ns(), self.room(rings), out);
            self.port.placed(now_ns(), arrival.frame, out);
        } else {
            self.to_guest = arrival.frame.bytes;
        }
    }

    /// Tells the port of buffers that the guest has added.
    pub(super) fn tell_room(&mut self, rings: &mut Rings) {
        if self.port.snoops() {
            let mut out = Out::default();
            self.port.set_room(now_ns(), self.room(rings), &mut out);
            self.forward(out, rings);
        }
    }

    /// The room of the fullest ring. What waits already has what comes next.
    fn room(&self, rings: &Rings) -> Room {
        let free = rings.receiving().map(|ring| {
            let queue = &rings.all[ring].queue;
            rings::free_buffers(queue, rings.memory).unwrap_or(0)
        });
        let ring_segs = free.min().filter(|_| self.waiting.is_empty()).unwrap_or(0);
        Room { ring_segs: ring_segs.into(), backlog_bytes: 0 }
    }

    /// Puts a frame into the receive ring of its connection. One that makes no sense to the ring is
    /// dropped.
    fn place(&mut self, arrival: &Arrival, rings: &mut Rings) -> Placed {
        let (header, bytes) = (arrival.header, &arrival.frame.bytes);
        let pairs = rings.receiving().count();
        let pair = if pairs > 1 { self.steering.pair(bytes) % pairs } else { 0 };
        let Some(ring) = rings.receiving().nth(pair) else { return Placed::NoBuffer };
        let mergeable = self.features.has(Features::MRG_RXBUF);
        let memory = rings.memory;
        match rings::place(&mut rings.all[ring].queue, memory, mergeable, header, bytes) {
            Ok(Placed::Bad) => {
                self.counts.bad_buffer += 1;
                Placed::Bad
            }
            Ok(placed) => placed,
            Err(error) => {
                self.stop(ring, rings, error);
                Placed::Bad
            }
        }
    }
}
