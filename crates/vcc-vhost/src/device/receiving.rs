//! From the wire to the guest.

use vcc_domain::{Frame, Out, ReceiveRing, Verdict};
use vcc_net::clock::now_ns;
use virtio_queue::QueueT;

use super::backlog::Arrival;
use vcc_net::virtio::feature;

use super::{BATCH, Device, Rings};
use crate::header::Header;
use crate::offload::Offload;
use crate::rings::{self, Placed};
use crate::wire::{self, Received};

impl Device {
    /// A guest without buffers leaves the frames where they are. True if more may wait.
    pub(super) fn receive(&mut self, rings: &mut Rings) -> bool {
        for _ in 0..BATCH {
            if !self.wants_frames(rings) {
                return false;
            }
            let received = wire::receive(&mut *self.wire, &mut self.read, &mut self.to_guest);
            let (header, mut frame) = match received {
                Received::Frame(header, frame) => (header, frame),
                Received::Nothing => return false,
                Received::Gone => {
                    self.is_wire_gone = true;
                    return false;
                }
                Received::Failed => {
                    self.counts.wire_failed += 1;
                    continue;
                }
            };
            let mut out = Out::default();
            let (verdict, receipt) = self.port.to_guest(now_ns(), &mut frame, &mut out);
            if verdict == Verdict::Pass {
                let header = header.passed(&frame);
                let arrival = Arrival { header, frame, receipt: Some(receipt) };
                self.hand_over(arrival, rings, &mut out);
            } else {
                self.to_guest = frame.bytes;
            }
            self.forward(out, rings);
        }
        true
    }

    fn wants_frames(&self, rings: &Rings) -> bool {
        let pairs = rings.receiving_pairs();
        // The guest has gone, is paused or reboots. Its peers' acknowledgements still make the port deliver what
        // it promised.
        if pairs == 0 {
            return self.port.held_bytes() > 0;
        }
        !rings.receiving().all(|pair| self.backlog.is_full_at(pair, pairs))
    }

    /// Gives the guest a frame that the port has made.
    pub(super) fn hand_over_own(&mut self, frame: Frame, rings: &mut Rings) {
        let Some(header) = Header::from_frame(&frame) else { return };
        let arrival = Arrival { header, frame, receipt: None };
        self.hand_over(arrival, rings, &mut Out::default());
    }

    /// Gives the guest a frame, or keeps it until the guest has room. `out` receives what the port
    /// lets go when the frame lies in the guest's ring. A guest without VIRTIO_NET_F_GUEST_ECN would
    /// repeat the CWR of a super-segment on each segment that it forwards (RFC 3168, 6.1.2), so the
    /// first one comes alone.
    fn hand_over(&mut self, mut arrival: Arrival, rings: &mut Rings, out: &mut Out) {
        if arrival.header.must_keep_cwr_apart(Offload::from_features(self.features))
            && let Some(first) = arrival.cut_first()
        {
            self.hand_over_whole(first, rings, out);
        }
        self.hand_over_whole(arrival, rings, out);
    }

    fn hand_over_whole(&mut self, arrival: Arrival, rings: &mut Rings, out: &mut Out) {
        let pairs = rings.receiving_pairs();
        let steered = if pairs > 1 { self.steering.pair(&arrival.frame.bytes) % pairs } else { 0 };
        // Without rings it waits for the first ones.
        let pair = rings.receiving().nth(steered).unwrap_or(0);
        let unplaced = match self.backlog.is_empty_at(pair) {
            true => self.place(pair, arrival, rings, out),
            false => Some(arrival),
        };
        match unplaced {
            None => {}
            Some(arrival) if self.backlog.takes(pair, pairs.max(1), &arrival) => {
                self.backlog.push_back(pair, arrival);
            }
            Some(_) => self.counts.no_buffer += 1,
        }
    }

    /// True if some may have room now.
    pub(super) fn hand_over_waiting(&mut self, rings: &mut Rings) -> bool {
        let mut more = false;
        for pair in 0..rings.pairs() {
            if rings.receives(pair) {
                more |= self.hand_over_waiting_at(pair, rings);
            } else if rings.receiving_pairs() > 0 {
                // The guest uses this pair no more.
                for arrival in self.backlog.take(pair) {
                    let mut out = Out::default();
                    self.hand_over_whole(arrival, rings, &mut out);
                    self.forward(out, rings);
                }
            }
        }
        more
    }

    fn hand_over_waiting_at(&mut self, pair: usize, rings: &mut Rings) -> bool {
        for _ in 0..BATCH {
            let Some(arrival) = self.backlog.pop(pair) else { return false };
            let mut out = Out::default();
            let unplaced = self.place(pair, arrival, rings, &mut out);
            self.forward(out, rings);
            if let Some(arrival) = unplaced {
                self.backlog.push_front(pair, arrival);
                return false;
            }
        }
        !self.backlog.is_empty_at(pair)
    }

    /// Puts a frame into a receive ring. Returns it if there is no buffer for it. One that makes no
    /// sense to the guest or to the ring is dropped.
    fn place(
        &mut self,
        pair: usize,
        arrival: Arrival,
        rings: &mut Rings,
        out: &mut Out,
    ) -> Option<Arrival> {
        if !rings.receives(pair) {
            return Some(arrival);
        }
        // The guest may have accepted other features since the frame came.
        if !arrival.header.within(Offload::from_features(self.features)) {
            self.counts.not_negotiated += 1;
            return None;
        }
        let header = arrival.header.for_guest(Offload::from_features(self.features));
        let mergeable = self.features.has(feature::MRG_RXBUF);
        let (ring, memory) = (2 * pair, rings.memory);
        let queue = &mut rings.all[ring].queue;
        match rings::place(queue, memory, mergeable, header, &arrival.frame.bytes) {
            Ok(Placed::Yes) => self.placed(arrival, rings, out),
            Ok(Placed::NoBuffer) => return Some(arrival),
            Ok(Placed::Bad) => self.counts.bad_buffer += 1,
            Err(error) => drop(self.stop(ring, rings, error)),
        }
        None
    }

    /// The frame lies in the guest's memory, which outlives this process: the port may acknowledge
    /// it.
    fn placed(&mut self, arrival: Arrival, rings: &Rings, out: &mut Out) {
        match arrival.receipt {
            Some(receipt) if self.port.snoops() => {
                self.port.set_room(now_ns(), self.receive_ring(rings), out);
                self.port.placed(now_ns(), arrival.frame, receipt, out);
            }
            _ => self.to_guest = arrival.frame.bytes,
        }
    }

    /// Reports to the port the buffers that the guest has added.
    pub(super) fn tell_room(&mut self, rings: &mut Rings) {
        if self.port.wants_room() {
            let mut out = Out::default();
            self.port.set_room(now_ns(), self.receive_ring(rings), &mut out);
            self.forward(out, rings);
        }
    }

    /// The fullest ring. What waits already has what comes next.
    fn receive_ring(&self, rings: &Rings) -> ReceiveRing {
        let pairs = rings.receiving_pairs();
        let all = rings.receiving().map(|pair| {
            let queue = &rings.all[2 * pair].queue;
            let free = rings::free_buffers(queue, rings.memory).unwrap_or(0);
            let free_segs = if self.backlog.is_empty_at(pair) { free.into() } else { 0 };
            let behind_segs = self.backlog.room_segs(pair, pairs);
            ReceiveRing { size_segs: queue.size().into(), free_segs, behind_segs }
        });
        all.min_by_key(|ring| ring.free_segs + ring.behind_segs).unwrap_or_default()
    }
}
