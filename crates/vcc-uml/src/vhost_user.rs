//! The vhost-user protocol, as far as a network card of User-Mode Linux uses it.
//!
//! Kicks are messages (in-band notifications), acknowledged when they have been processed. There
//! are no calls, the device's own messages: interrupts go through the guest's clock.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use vcc_net::vhost_user::protocol_feature::{BACKEND_REQ, CONFIG, INBAND_NOTIFICATIONS, REPLY_ACK};
use vcc_net::vhost_user::{Connection, End, Message};

pub(crate) const PROTOCOL_FEATURES: u64 = REPLY_ACK | BACKEND_REQ | CONFIG | INBAND_NOTIFICATIONS;

/// A guest's connection to its card, which waits for the guest.
pub(crate) struct CardLine(Connection);

impl CardLine {
    pub fn new(stream: UnixStream) -> Self {
        Self(Connection::new(stream))
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// None if the guest has closed the card.
    pub fn receive(&mut self) -> io::Result<Option<Message>> {
        loop {
            match self.0.next() {
                Ok(None) => {}
                Err(End::Gone) => return Ok(None),
                received => return Ok(received?),
            }
        }
    }

    pub fn answer(&mut self, asked: &Message, payload: &[u8]) -> io::Result<()> {
        unless_gone(self.0.answer(asked, payload))
    }

    /// Acknowledges a request without an answer of its own, if the guest wants that.
    pub fn acknowledge(&mut self, asked: &Message) -> io::Result<()> {
        unless_gone(self.0.acknowledge(asked))
    }
}

/// The next message will show that the guest is gone.
fn unless_gone(result: Result<(), End>) -> io::Result<()> {
    match result {
        Err(End::Gone) => Ok(()),
        result => Ok(result?),
    }
}
