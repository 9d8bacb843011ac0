//! The card: carries frames from the guest's rings through the port to the wire and back.

mod backlog;
mod moving;
mod receiving;
mod sending;

use backlog::Backlog;
use moving::Moving;
use vcc_domain::{Frame, Out, Port, Promise};
use virtio_queue::{Error as RingError, QueueT};

use vcc_net::clock::now_ns;
use vcc_net::virtio::feature;

use crate::card::Served;
use crate::counts::{CardCounts, Reported};
use crate::dirty::GuestMemory;
use crate::event::{Event, Journal, OnEvent};
use crate::features::Features;
use crate::header::Header;
use crate::offload::Offload;
use crate::rarp;
use crate::ring::Ring;
use crate::rings;
use crate::steering::Steering;
use crate::wire::{self, Unsent, Wire};

/// Frames of a ring or of the wire in a turn, so that each gets its own.
pub(crate) const BATCH: usize = 64;

/// Pairs of rings that a guest may use.
pub(crate) const PAIRS_MAX: usize = 8;

pub(crate) struct Device {
    port: Port,
    wire: Box<dyn Wire>,
    is_wire_gone: bool,
    features: Features,
    /// The offloads that were reported to the wire as the guest's: none at first.
    offload: Offload,
    steering: Steering,
    /// Frames for which the guest had no buffer.
    backlog: Backlog,
    /// None: the guest is on this host, or there is no guest.
    moving: Option<Moving>,
    counts: CardCounts,
    reported: Reported,
    journal: Journal,
    /// Memory of the frame that is being carried.
    from_guest: Vec<u8>,
    to_guest: Vec<u8>,
    read: Box<[u8]>,
}

/// The guest's rings and memory during a turn. Rings with even numbers receive, those with odd ones
/// send.
struct Rings<'session> {
    memory: &'session GuestMemory,
    all: &'session mut [Ring],
    speak_virtio_1: bool,
}

impl Rings<'_> {
    fn is_up(&self, ring: usize) -> bool {
        self.speak_virtio_1 && self.all.get(ring).is_some_and(Ring::is_up)
    }

    fn is_started(&self, ring: usize) -> bool {
        self.speak_virtio_1 && self.all.get(ring).is_some_and(Ring::is_started)
    }

    fn pairs(&self) -> usize {
        self.all.len() / 2
    }

    fn receives(&self, pair: usize) -> bool {
        self.is_up(2 * pair)
    }

    /// The pairs on which the guest receives.
    fn receiving(&self) -> impl Iterator<Item = usize> {
        (0..self.pairs()).filter(|pair| self.receives(*pair))
    }

    fn receiving_pairs(&self) -> usize {
        self.receiving().count()
    }

    /// The rings from which frames are taken.
    fn sending(&self) -> impl Iterator<Item = usize> {
        (1..self.all.len()).step_by(2).filter(|ring| self.is_started(*ring))
    }
}

impl Served for Device {
    fn port(&self) -> &Port {
        &self.port
    }

    fn port_mut(&mut self) -> &mut Port {
        &mut self.port
    }

    fn counts(&self) -> CardCounts {
        self.counts
    }

    fn report(&mut self, event: Event) {
        Device::report(self, event);
    }

    /// A guest that is not there yet gets the report once it is.
    fn end_promises(&mut self, promises: Vec<Promise>) {
        let mut out = Out::default();
        self.port.end_promises(now_ns(), promises, &mut out);
        self.forward_to_no_rings(out);
    }
}

impl Device {
    pub(crate) fn new(port: Port, wire: Box<dyn Wire>, on_event: OnEvent) -> Self {
        Device {
            port,
            wire,
            is_wire_gone: false,
            features: Features::default(),
            offload: Offload::default(),
            steering: Steering::new(),
            backlog: Backlog::default(),
            moving: None,
            counts: CardCounts::default(),
            reported: Reported::default(),
            journal: Journal::new(on_event),
            from_guest: Vec::new(),
            to_guest: Vec::new(),
            read: wire::frame_memory(),
        }
    }

    /// Has the host's side of the card been removed?
    pub(crate) fn is_wire_gone(&self) -> bool {
        self.is_wire_gone
    }

    pub(crate) fn report(&mut self, event: Event) {
        self.journal.report(now_ns(), event);
    }

    /// The guest's driver has accepted these features.
    pub(crate) fn accept(&mut self, features: Features) {
        self.features = features;
    }

    /// Reports to the wire the offloads that the guest takes now. It takes a lock of all the host's
    /// network devices, so not with each message that names features.
    fn tell_wire(&mut self, rings: &Rings) {
        let offload = Offload::from_features(self.features);
        if offload == self.offload || rings.receiving().next().is_none() {
            return;
        }
        self.offload = offload;
        if let Err(error) = self.wire.set_offload(offload) {
            self.report(Event::OffloadFailed(error));
        }
    }

    /// The guest's driver begins anew.
    pub(crate) fn reset(&mut self) {
        self.backlog.clear();
        self.accept(Features::default());
    }

    /// No guest uses the card any more.
    pub(crate) fn leave(&mut self) {
        self.ends_move();
        self.reset();
        self.reported.begin_anew(&self.counts);
    }

    /// Does all work that is due, at most a batch of each kind. True if more is left.
    pub(crate) fn turn(&mut self, memory: &GuestMemory, rings: &mut [Ring]) -> bool {
        if self.moving.is_some() {
            return false;
        }
        let used_before: Vec<u16> = rings.iter().map(|ring| ring.queue.next_used()).collect();
        rings.iter_mut().for_each(|ring| ring.note_queued(memory));
        let speak_virtio_1 = self.features.has(feature::VERSION_1);
        let mut rings = Rings { memory, all: rings, speak_virtio_1 };
        self.advance(&mut rings);
        self.tell_wire(&rings);
        let mut more = self.hand_over_waiting(&mut rings);
        self.tell_room(&mut rings);
        more |= self.receive(&mut rings);
        more |= self.send(&mut rings);
        // The port's acknowledgement of what the guest has sent, while the guest still runs.
        if self.next_deadline_ns().is_some_and(|due_ns| due_ns <= now_ns()) {
            self.advance(&mut rings);
        }
        more |= self.want_kicks(&mut rings);
        self.call(&used_before, &mut rings);
        self.tell_of_drops();
        more
    }

    fn tell_of_drops(&mut self) {
        for why in self.reported.news(&self.counts) {
            self.report(Event::Dropped(why));
        }
    }

    /// Ends the connections whose promises will not be kept.
    pub(crate) fn end(&mut self, memory: &GuestMemory, rings: &mut [Ring]) {
        self.ends_move();
        let used_before: Vec<u16> = rings.iter().map(|ring| ring.queue.next_used()).collect();
        rings.iter_mut().for_each(|ring| ring.note_queued(memory));
        let speak_virtio_1 = self.features.has(feature::VERSION_1);
        let mut rings = Rings { memory, all: rings, speak_virtio_1 };
        let mut out = Out::default();
        self.port.end(now_ns(), &mut out);
        self.forward(out, &mut rings);
        self.call(&used_before, &mut rings);
    }

    pub(crate) fn next_deadline_ns(&self) -> Option<u64> {
        self.port.next_deadline_ns().filter(|_| self.moving.is_none())
    }

    /// Announces the guest's address on the wire, by a request that none answers (RFC 903), so that
    /// switches learn where it is.
    pub(crate) fn announce(&mut self, mac: [u8; 6]) {
        let Ok(()) = self.wire.send(&Header::default().bytes(), &rarp::request(mac)) else {
            self.counts.wire_refused += 1;
            return;
        };
    }

    fn advance(&mut self, rings: &mut Rings) {
        let mut out = Out::default();
        self.port.advance(now_ns(), &mut out);
        self.forward(out, rings);
    }

    /// Forwards what the port has let go.
    fn forward(&mut self, out: Out, rings: &mut Rings) {
        for frame in out.to_fabric {
            if let Some(header) = Header::from_frame(&frame) {
                self.put_on_wire(header, &frame);
            }
        }
        for frame in out.to_guest {
            self.hand_over_own(frame, rings);
        }
    }

    fn put_on_wire(&mut self, header: Header, frame: &Frame) {
        match wire::send(&mut *self.wire, header, frame) {
            Ok(()) => {}
            Err(Unsent::Gone) => self.is_wire_gone = true,
            Err(Unsent::Down) => self.counts.wire_down += 1,
            Err(Unsent::Refused) => self.counts.wire_refused += 1,
        }
    }

    /// Asks to be woken for what the turn has waited for in vain. True if it has come meanwhile.
    fn want_kicks(&mut self, rings: &mut Rings) -> bool {
        let waits_for_room = self.port.waits_for_room();
        let receiving = rings.receiving();
        let receiving = receiving.filter(|pair| waits_for_room || !self.backlog.is_empty_at(*pair));
        let receiving = receiving.map(|pair| 2 * pair);
        let sending = rings.sending();
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
            if !rings.is_started(ring) {
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
        self.report(Event::RingStopped { ring, error });
        false
    }
}
