//! The relay: carries frames between two wires, of which one leads to the guest, through the port.
//!
//! What is written to the guest's wire is not in the guest's memory yet, so the port is never told
//! that it has been placed: no treatment may have a `receive` other than by the guest.

use vcc_domain::{Frame, Out, Port, Promise, Verdict};
use vcc_net::clock::now_ns;

use crate::card::Served;
use crate::counts::{CardCounts, Reported};
use crate::device::BATCH;
use crate::event::{Event, Journal, OnEvent};
use crate::header::Header;
use crate::offload::Offload;
use crate::wire::{self, Received, Unsent, Wire};

/// Which way a frame goes.
#[derive(Clone, Copy)]
enum Way {
    FromGuest,
    ToGuest,
}

pub(crate) struct Relay {
    port: Port,
    guest: Box<dyn Wire>,
    fabric: Box<dyn Wire>,
    is_wire_gone: bool,
    counts: CardCounts,
    reported: Reported,
    journal: Journal,
    /// Memory of the frame that is being carried.
    memory: Vec<u8>,
    read: Box<[u8]>,
}

/// The kernel completes what a device behind it does not take.
const ALL: Offload = Offload { checksum: true, tso4: true, tso6: true, ecn: true };

impl Served for Relay {
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
        self.journal.report(now_ns(), event);
    }

    fn end_promises(&mut self, promises: Vec<Promise>) {
        let mut out = Out::default();
        self.port.end_promises(now_ns(), promises, &mut out);
        self.forward(out);
    }
}

impl Relay {
    pub(crate) fn new(
        port: Port,
        guest: Box<dyn Wire>,
        fabric: Box<dyn Wire>,
        on_event: OnEvent,
    ) -> Self {
        let mut relay = Relay {
            port,
            guest,
            fabric,
            is_wire_gone: false,
            counts: CardCounts::default(),
            reported: Reported::default(),
            journal: Journal::new(on_event),
            memory: Vec::new(),
            read: wire::frame_memory(),
        };
        let set = relay.guest.set_offload(ALL).and_then(|()| relay.fabric.set_offload(ALL));
        if let Err(error) = set {
            relay.journal.report(now_ns(), Event::OffloadFailed(error));
        }
        relay
    }

    pub(crate) fn is_wire_gone(&self) -> bool {
        self.is_wire_gone
    }

    pub(crate) fn next_deadline_ns(&self) -> Option<u64> {
        self.port.next_deadline_ns()
    }

    /// Does all work that is due, at most a batch of each kind. True if more is left.
    pub(crate) fn turn(&mut self) -> bool {
        self.advance();
        let mut more = self.carry(Way::ToGuest);
        more |= self.carry(Way::FromGuest);
        // The port's acknowledgement of what the guest has sent.
        if self.next_deadline_ns().is_some_and(|due_ns| due_ns <= now_ns()) {
            self.advance();
        }
        for why in self.reported.news(&self.counts) {
            self.journal.report(now_ns(), Event::Dropped(why));
        }
        more
    }

    /// Ends the connections whose promises will not be kept.
    pub(crate) fn end(&mut self) {
        let mut out = Out::default();
        self.port.end(now_ns(), &mut out);
        self.forward(out);
    }

    fn advance(&mut self) {
        let mut out = Out::default();
        self.port.advance(now_ns(), &mut out);
        self.forward(out);
    }

    /// A batch of one direction. True if more may wait.
    fn carry(&mut self, way: Way) -> bool {
        for _ in 0..BATCH {
            let wire = match way {
                Way::FromGuest => &mut *self.guest,
                Way::ToGuest => &mut *self.fabric,
            };
            match wire::receive(wire, &mut self.read, &mut self.memory) {
                Received::Frame(header, mut frame) => {
                    let mut out = Out::default();
                    let verdict = match way {
                        Way::FromGuest => self.port.from_guest(now_ns(), &mut frame, &mut out),
                        Way::ToGuest => self.port.to_guest(now_ns(), &mut frame, &mut out).0,
                    };
                    if verdict == Verdict::Pass {
                        self.put(way, header.passed(&frame), &frame);
                    }
                    self.forward(out);
                    self.memory = frame.bytes;
                }
                Received::Nothing => return false,
                Received::Gone => {
                    self.is_wire_gone = true;
                    return false;
                }
                Received::Failed => match way {
                    Way::FromGuest => self.counts.bad_from_guest += 1,
                    Way::ToGuest => self.counts.wire_failed += 1,
                },
            }
        }
        true
    }

    /// Forwards what the port has let go.
    fn forward(&mut self, out: Out) {
        for (way, frames) in [(Way::FromGuest, out.to_fabric), (Way::ToGuest, out.to_guest)] {
            for frame in frames {
                if let Some(header) = Header::from_frame(&frame) {
                    self.put(way, header, &frame);
                }
            }
        }
    }

    fn put(&mut self, way: Way, header: Header, frame: &Frame) {
        let wire = match way {
            Way::FromGuest => &mut *self.fabric,
            Way::ToGuest => &mut *self.guest,
        };
        match (wire::send(wire, header, frame), way) {
            (Ok(()), _) => {}
            (Err(Unsent::Gone), _) => self.is_wire_gone = true,
            (Err(_), Way::ToGuest) => self.counts.no_buffer += 1,
            (Err(Unsent::Down), Way::FromGuest) => self.counts.wire_down += 1,
            (Err(Unsent::Refused), Way::FromGuest) => self.counts.wire_refused += 1,
        }
    }
}
