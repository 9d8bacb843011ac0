//! The receiving half: checks and counts the data, and echoes it if the pattern is ping-pong.

use super::messages::Inbox;
use super::{broken, tcp_info};
use crate::error::{Doing, Error, Result};
use crate::pattern::Pattern;
use crate::payload::Stream;
use crate::report::ReceiverHalf;
use crate::samples::Received;
use crate::system::now_ns;
use socket2::Socket;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;

#[derive(Debug)]
pub struct Receiver {
    stream: Stream,
    socket: Socket,
    echoes: bool,
    /// Receives messages; none for other patterns.
    inbox: Option<Inbox>,
    /// The size of each transfer; none for other patterns.
    transfer_bytes: Option<u64>,
    half: ReceiverHalf,
}

impl Receiver {
    /// `socket` has just been accepted.
    ///
    /// # Errors
    /// The socket is not a TCP socket.
    pub fn new(socket: Socket, flow: usize, seed: u64, pattern: Pattern) -> Result<Self> {
        let has_ecn = tcp_info(&socket)?.has_ecn();
        Ok(Self {
            stream: Stream::new(seed, flow),
            socket,
            echoes: pattern == Pattern::PingPong,
            inbox: matches!(pattern, Pattern::Messages(_)).then(Inbox::default),
            transfer_bytes: match pattern {
                Pattern::Transfers(transfers) => Some(transfers.bytes.get()),
                Pattern::Bulk
                | Pattern::PingPong
                | Pattern::Messages(_)
                | Pattern::Idle
                | Pattern::Requests(_) => None,
            },
            half: ReceiverHalf { flow, has_ecn, payload_ok: true, ..ReceiverHalf::default() },
        })
    }

    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    pub fn received_bytes(&self) -> u64 {
        self.half.received_bytes
    }

    /// Continues with the connection of the next transfer.
    ///
    /// # Errors
    /// The previous transfer has not ended.
    pub fn next_transfer(&mut self, socket: Socket) -> Result<()> {
        if self.half.finished_at_ns.take().is_none() {
            let problem = "a transfer began before the one before it had ended".into();
            return Err(Error::Flow { flow: self.half.flow, problem });
        }
        self.socket = socket;
        Ok(())
    }

    /// Reads once and compares; false at the end of the stream, when nothing more will come.
    ///
    /// # Errors
    /// The connection is gone, or ended within a transfer.
    pub fn receive(&mut self, scratch: &mut [u8]) -> Result<bool> {
        let data = match (&self.socket).read(scratch) {
            Ok(0) => {
                self.half.finished_at_ns = Some(now_ns());
                return self.check_end().map(|()| false);
            }
            Ok(bytes) => &scratch[..bytes],
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
            Err(error) => return Err(broken(self.half.flow, "the receiver", error)),
        };
        if let Some(inbox) = &mut self.inbox {
            let taken = inbox.take(&self.socket, &self.stream, data);
            let (is_right, whole) =
                taken.map_err(|error| broken(self.half.flow, "the receiver", error))?;
            self.half.payload_ok &= is_right;
            self.half.received_bytes += data.len() as u64;
            let now_ns = if whole > 0 { now_ns() } else { 0 };
            self.half.transfers_ended_at_ns.extend((0..whole).map(|_| now_ns));
            return Ok(true);
        }
        self.half.payload_ok &= self.stream.matches(self.half.received_bytes, data);
        self.half.received_bytes += data.len() as u64;
        if self.is_between_transfers() {
            self.half.transfers_ended_at_ns.push(now_ns());
        }
        if self.echoes {
            let answered = (&self.socket).write_all(data);
            answered.map_err(|error| broken(self.half.flow, "the receiver", error))?;
        }
        Ok(true)
    }

    fn is_between_transfers(&self) -> bool {
        self.transfer_bytes.is_some_and(|bytes| self.half.received_bytes % bytes == 0)
    }

    fn check_end(&self) -> Result<()> {
        if self.transfer_bytes.is_none() || self.is_between_transfers() {
            return Ok(());
        }
        let problem = "the connection ended within a transfer".into();
        Err(Error::Flow { flow: self.half.flow, problem })
    }

    /// Closes its own direction, which shows the sender that all data was received.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn answer_end(&self) -> Result<()> {
        self.socket.shutdown(Shutdown::Write).doing(|| "answer the end of a flow".into())
    }

    /// Records the bytes received, at the start and the end of the window and between phases.
    pub fn note_bound(&mut self) {
        self.half.received_at_bounds_bytes.push(self.half.received_bytes);
    }

    pub fn note_received(&mut self, at_us: u64) {
        let bytes = self.half.received_bytes;
        self.half.received_over_time.push(Received { at_us, bytes });
    }

    pub fn into_half(self) -> ReceiverHalf {
        self.half
    }
}
