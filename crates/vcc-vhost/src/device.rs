//! The card: carries frames from the guest's rings through the port to the wire and back.

use std::collections::VecDeque;
use std::io;

use vcc_domain::{Frame, Out, Port, Promise, Verdict};
use virtio_queue::{Error as RingError, QueueT};
use vm_memory::GuestMemoryMmap;

use crate::counts::{CardCounts, REASONS};
use crate::event::{Event, Tell};
use crate::features::Features;
use crate::header::{FRAME_MAX_BYTES, HEADER_BYTES, Header};
use crate::ring::Ring;
use crate::rings::{self, Placed, Taken};
use crate::steering::Steering;
use crate::wake::now_ns;
use crate::wire::{Offload, Wire};

/// Frames of a ring or of the wire in a turn, so that each gets its own.
const BATCH: usize = 64;
/// Frames that wait for the guest's buffers. More wait in the wire's queue.
const WAITING_MAX: usize = 1024;

/// Pairs of rings that a guest may use.
pub(crate) const PAIRS_MAX: usize = 8;

pub(crate) struct Device {
    port: Port,
    wire: Box<dyn Wire>,
    features: Features,
    steering: Steering,
    /// Frames for which the guest had no buffer.
    waiting: VecDeque<(Header, Vec<u8>)>,
    counts: CardCounts,
    /// The counts up to which a person needs not be told of more.
    told: [u64; REASONS],
    tell: Tell,
    /// Memory of the frame that is being carried.
    from_guest: Vec<u8>,
    to_guest: Vec<u8>,
    read: Box<[u8]>,
}

/// The guest's rings and memory during a turn. Rings with even numbers receive, those with odd ones
/// send.
struct Rings<'session> {
    memory: &'session GuestMemoryMmap,
    all: &'session mut [Ring],
    speak_virtio_1: bool,
}

impl Rings<'_> {
    fn is_up(&self, ring: usize) -> bool {
        self.speak_virtio_1 && self.all[ring].is_up()
    }

    fn receiving(&self) -> impl Iterator<Item = usize> {
        (0..self.all.len()).step_by(2).filter(|ring| self.is_up(*ring))
    }

    fn sending(&self) -> impl Iterator<Item = usize> {
        (1..self.all.len()).step_by(2).filter(|ring| self.is_up(*ring))
    }
}

impl Device {
    pub(crate) fn new(port: Port, wire: Box<dyn Wire>, tell: Tell) -> Self {
        Device {
            port,
            wire,
            features: Features::default(),
            steering: Steering::new(),
            waiting: VecDeque::new(),
            counts: CardCounts::default(),
            told: [0; REASONS],
            tell,
            from_guest: Vec::new(),
            to_guest: Vec::new(),
            read: vec![0; HEADER_BYTES + FRAME_MAX_BYTES].into(),
        }
    }

    pub(crate) fn port(&self) -> &Port {
        &self.port
    }

    pub(crate) fn port_mut(&mut self) -> &mut Port {
        &mut self.port
    }

    pub(crate) fn counts(&self) -> CardCounts {
        self.counts
    }

    pub(crate) fn tell(&mut self, event: Event) {
        (self.tell)(event);
    }

    /// The guest's driver has accepted these features.
    pub(crate) fn accept(&mut self, features: Features) {
        self.features = features;
        if let Err(error) = self.wire.set_offload(Offload::of(features)) {
            self.tell(Event::OffloadFailed(error));
        }
    }

    /// No guest uses the card any more.
    pub(crate) fn leave(&mut self) {
        self.waiting.clear();
        self.told = self.counts.reasons().map(|(count, _)| count);
        self.accept(Features::default());
    }

    /// Does all work that is due, at most a batch of each kind. True if more is left.
    pub(crate) fn turn(&mut self, memory: &GuestMemoryMmap, rings: &mut [Ring]) -> bool {
        let used_before: Vec<u16> = rings.iter().map(|ring| ring.queue.next_used()).collect();
        rings.iter_mut().for_each(|ring| ring.look(memory));
        let speak_virtio_1 = self.features.has(Features::VERSION_1);
        let mut rings = Rings { memory, all: rings, speak_virtio_1 };
        self.advance(&mut rings);
        let mut more = self.hand_over_waiting(&mut rings);
        more |= self.receive(&mut rings);
        more |= self.send(&mut rings);
        let was_full = !self.port.wants_frames();
        // The port's acknowledgement of what the guest has sent, while the guest still runs.
        if self.next_deadline_ns().is_some_and(|due_ns| due_ns <= now_ns()) {
            self.advance(&mut rings);
        }
        // The rest of what the guest had queued.
        more |= was_full && self.port.wants_frames();
        more |= self.want_kicks(&mut rings);
        self.call(&used_before, &mut rings);
        self.tell_of_drops();
        more
    }

    fn tell_of_drops(&mut self) {
        for (index, (count, why)) in self.counts.reasons().into_iter().enumerate() {
            if count > self.told[index] {
                self.told[index] = u64::MAX;
                self.tell(Event::Dropped(why));
            }
        }
    }

    /// Ends the connections of another process's ledger. A guest that is not there yet is told when
    /// it is.
    pub(crate) fn end_promises(&mut self, promises: Vec<Promise>) {
        let mut out = Out::default();
        self.port.end_promises(now_ns(), promises, &mut out);
        let memory = GuestMemoryMmap::new();
        self.forward(out, &mut Rings { memory: &memory, all: &mut [], speak_virtio_1: false });
    }

    /// Ends the connections whose promises will not be kept.
    pub(crate) fn end(&mut self, memory: &GuestMemoryMmap, rings: &mut [Ring]) {
        let used_before: Vec<u16> = rings.iter().map(|ring| ring.queue.next_used()).collect();
        rings.iter_mut().for_each(|ring| ring.look(memory));
        let speak_virtio_1 = self.features.has(Features::VERSION_1);
        let mut rings = Rings { memory, all: rings, speak_virtio_1 };
        let mut out = Out::default();
        self.port.end(now_ns(), &mut out);
        self.forward(out, &mut rings);
        self.call(&used_before, &mut rings);
    }

    pub(crate) fn next_deadline_ns(&self) -> Option<u64> {
        self.port.next_deadline_ns()
    }

    fn advance(&mut self, rings: &mut Rings) {
        let mut out = Out::default();
        self.port.advance(now_ns(), &mut out);
        self.forward(out, rings);
    }

    /// Forwards what the port has let go.
    fn forward(&mut self, out: Out, rings: &mut Rings) {
        for frame in out.to_fabric {
            if let Some(header) = Header::of(&frame) {
                self.put_on_wire(header, &frame);
            }
        }
        for frame in out.to_guest {
            if let Some(header) = Header::of(&frame) {
                self.hand_over(header, &frame, rings);
            }
        }
    }

    /// From the wire to the guest. A guest without buffers leaves the frames where they are.
    fn receive(&mut self, rings: &mut Rings) -> bool {
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
                Err(_) => {
                    self.counts.wire_failed += 1;
                    return false;
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
                self.hand_over(header.passed(&frame), &frame, rings);
            }
            self.forward(out, rings);
            self.to_guest = frame.bytes;
        }
        true
    }

    /// From the guest to the wire, as long as the port takes frames.
    fn send(&mut self, rings: &mut Rings) -> bool {
        let mut more = false;
        for ring in rings.sending().collect::<Vec<_>>() {
            more |= self.send_of(ring, rings);
        }
        more
    }

    fn send_of(&mut self, ring: usize, rings: &mut Rings) -> bool {
        for _ in 0..BATCH {
            if !self.port.wants_frames() {
                return false;
            }
            let memory = rings.memory;
            let mut bytes = std::mem::take(&mut self.from_guest);
            let taken = rings::take(&mut rings.all[ring].queue, memory, &mut bytes);
            let (head, header) = match taken {
                Ok(Taken::Nothing) => {
                    self.from_guest = bytes;
                    return false;
                }
                Ok(Taken::Frame(head, header)) => (head, Some(header)),
                Ok(Taken::Bad(head)) => (head, None),
                Err(error) => return self.stop(ring, rings, error),
            };
            // The frame is in our memory, so its descriptors are the guest's again.
            if let Err(error) = rings::give_back(&mut rings.all[ring].queue, memory, head) {
                return self.stop(ring, rings, error);
            }
            let features = self.features;
            let header = header.filter(|header| header.check(bytes.len(), features).is_ok());
            let Some(header) = header else {
                self.counts.bad_from_guest += 1;
                self.from_guest = bytes;
                continue;
            };
            if rings.sending().nth(1).is_some() {
                self.steering.note(&bytes, ring / 2);
            }
            let mut frame = header.frame(bytes);
            let mut out = Out::default();
            let verdict = self.port.from_guest(now_ns(), &mut frame, &mut out);
            if verdict == Verdict::Pass {
                self.put_on_wire(header.passed(&frame), &frame);
            }
            self.forward(out, rings);
            self.from_guest = frame.bytes;
        }
        true
    }

    fn put_on_wire(&mut self, header: Header, frame: &Frame) {
        if self.wire.send(&header.bytes(), &frame.bytes).is_err() {
            self.counts.wire_refused += 1;
        }
    }

    /// Gives the guest a frame, or keeps it until the guest has room.
    fn hand_over(&mut self, header: Header, frame: &Frame, rings: &mut Rings) {
        if !header.within(Offload::of(self.features)) {
            self.counts.not_negotiated += 1;
            return;
        }
        if self.waiting.is_empty() && self.place(header, &frame.bytes, rings) {
            return;
        }
        if self.waiting.len() >= 2 * WAITING_MAX {
            self.counts.no_buffer += 1;
            return;
        }
        self.waiting.push_back((header, frame.bytes.clone()));
    }

    fn hand_over_waiting(&mut self, rings: &mut Rings) -> bool {
        for _ in 0..BATCH {
            let Some((header, bytes)) = self.waiting.pop_front() else { return false };
            if !self.place(header, &bytes, rings) {
                self.waiting.push_front((header, bytes));
                return false;
            }
        }
        !self.waiting.is_empty()
    }

    /// Puts a frame into the receive ring of its connection. False if it has no room now.
    fn place(&mut self, header: Header, bytes: &[u8], rings: &mut Rings) -> bool {
        let pairs = rings.receiving().count();
        if pairs == 0 {
            return false;
        }
        let pair = if pairs > 1 { self.steering.pair(bytes) % pairs } else { 0 };
        let Some(ring) = rings.receiving().nth(pair) else { return false };
        let mergeable = self.features.has(Features::MRG_RXBUF);
        let memory = rings.memory;
        match rings::place(&mut rings.all[ring].queue, memory, mergeable, header, bytes) {
            // From here on, the frame lies in the guest's memory, which outlives this process.
            Ok(Placed::Yes) => true,
            Ok(Placed::NoBuffer) => false,
            Ok(Placed::Bad) => {
                self.counts.bad_buffer += 1;
                true
            }
            Err(error) => {
                self.stop(ring, rings, error);
                true
            }
        }
    }

    /// Asks to be woken for what the turn has waited for in vain. True if it has come meanwhile.
    fn want_kicks(&mut self, rings: &mut Rings) -> bool {
        let receiving = rings.receiving().filter(|_| !self.waiting.is_empty());
        let sending = rings.sending().filter(|_| self.port.wants_frames());
        let mut more = false;
        for ring in receiving.chain(sending).collect::<Vec<_>>() {
            let Ring { queue, seen, .. } = &rings.all[ring];
            match rings::want_kick(queue, rings.memory, *seen) {
                Ok(came) => more |= came,
                Err(error) => more |= self.stop(ring, rings, error),
            }
        }
        more
    }

    /// Interrupts the guest where it wants that.
    fn call(&mut self, used_before: &[u16], rings: &mut Rings) {
        for (ring, used_before) in used_before.iter().enumerate() {
            if !rings.is_up(ring) {
                continue;
            }
            match rings::wants_call(&rings.all[ring].queue, rings.memory, *used_before) {
                Ok(false) => {}
                Ok(true) => rings.all[ring].call(),
                Err(error) => drop(self.stop(ring, rings, error)),
            }
        }
    }

    /// Uses a broken ring no more, until the guest's driver sets it up again. False: it needs no
    /// other turn.
    fn stop(&mut self, ring: usize, rings: &mut Rings, error: RingError) -> bool {
        rings.all[ring].queue.set_ready(false);
        self.tell(Event::RingStopped { ring, error });
        false
    }
}
