//! A guest that moves to another host, or comes from one: what the card has of its connections goes
//! with it (vhost-user, "Migrating back-end state").
//!
//! From the time when the state has been written or read to that when the guest's rings start, nobody
//! knows which of two hosts the guest will run on. The card does nothing then: what one of them
//! promises or delivers, the other must not.

use std::io::ErrorKind;

use vcc_domain::Out;
use vcc_net::clock::now_ns;

use super::backlog::Arrival;
use super::{Device, Rings};
use crate::dirty::GuestMemory;
use crate::event::Event;
use crate::header::Header;

/// More frames than a tap's queue has.
const WAITING_MAX: usize = 1 << 16;

/// On which way the guest is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moving {
    /// `taken`: the front end has the state.
    Away { connections: usize, taken: bool },
    /// It has not run here yet, and may move on to another host.
    Here,
}

impl Device {
    /// The guest's rings have stopped, because it moves: what the card has of its connections.
    pub(crate) fn leaves(&mut self) -> Vec<u8> {
        if self.moving.is_none() {
            let mut out = Out::default();
            self.port.advance(now_ns(), &mut out);
            self.port.end_waits(now_ns(), &mut out);
            self.forward_to_no_rings(out);
        }
        let written_by = concat!("vcc ", env!("CARGO_PKG_VERSION"));
        let waiting =
            self.backlog.iter().map(|arrival| (&arrival.frame, arrival.receipt.is_some()));
        let (connections, bytes) = self.port.hand_over(written_by, waiting);
        // One more state does not change which host may continue the connections.
        self.moving.get_or_insert(Moving::Away { connections, taken: false });
        self.report(Event::HandsOver { connections, bytes: bytes.len() });
        bytes
    }

    /// Whoever wants the state has all of it. If this process ends, the next one is not to end what
    /// is promised.
    pub(crate) fn is_taken(&mut self) {
        if let Some(Moving::Away { taken, .. }) = &mut self.moving {
            *taken = true;
            self.port.suspend_ledger();
        }
    }

    /// The longest state that the card takes.
    pub(crate) fn state_limit_bytes(&self) -> usize {
        self.port.state_limit_bytes() + super::backlog::LIMIT_BYTES * 4
    }

    /// Takes the connections of a guest that comes from another host.
    ///
    /// # Errors
    /// In words: the card has none of them then.
    pub(crate) fn comes(&mut self, state: &[u8]) -> Result<(), String> {
        if self.moving.is_some() {
            return Err("there is a state already that has not been used".to_owned());
        }
        let arrived = self.port.take_over(now_ns(), state).map_err(|error| error.to_string())?;
        self.discard_waiting();
        for (frame, receipt) in arrived.waiting {
            if let Some(header) = Header::from_frame(&frame) {
                self.backlog.push_back(0, Arrival { header, frame, receipt });
            }
        }
        self.moving = Some(Moving::Here);
        let (connections, bytes) = (arrived.connections, state.len());
        self.report(Event::TakesOver { connections, bytes });
        Ok(())
    }

    /// What has waited on the wire was for a guest that was not here, perhaps for the same one before it
    /// left, and is old.
    fn discard_waiting(&mut self) {
        for _ in 0..WAITING_MAX {
            match self.wire.receive(&mut self.read) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::NotConnected => {
                    self.is_wire_gone = true;
                    return;
                }
                _ => {}
            }
        }
    }

    /// The guest's rings start: it runs here.
    pub(crate) fn starts(&mut self) {
        let Some(moving) = self.moving.take() else { return };
        let mut out = Out::default();
        self.port.go_on(now_ns(), &mut out);
        self.forward_to_no_rings(out);
        if matches!(moving, Moving::Away { .. }) {
            self.report(Event::Stays);
        }
    }

    /// The front end has gone. Its guest runs elsewhere if that has the state.
    pub(super) fn ends_move(&mut self) {
        match self.moving {
            None => {}
            // It had no use for the state.
            Some(Moving::Away { taken: false, .. }) => self.starts(),
            Some(Moving::Away { connections, taken: true }) => {
                self.port.has_gone();
                self.report(Event::Left { connections });
            }
            // The host before continues them.
            Some(Moving::Here) => self.port.has_gone(),
        }
        self.moving = None;
    }

    /// The guest has left, and the front end did not ask for the state.
    pub(crate) fn is_left_behind(&mut self) {
        if self.moving.is_none() && self.port.flows().next().is_some() {
            let mut out = Out::default();
            self.port.end(now_ns(), &mut out);
            self.forward_to_no_rings(out);
            self.report(Event::LeftBehind);
        }
    }

    /// Frames for the guest wait until it has rings.
    pub(super) fn forward_to_no_rings(&mut self, out: Out) {
        let memory = GuestMemory::new();
        self.forward(out, &mut Rings { memory: &memory, all: &mut [], speak_virtio_1: false });
    }
}
