//! The receiving half: it checks and counts what comes, and echoes it where that is the pattern.

use super::{broken, tcp_info};
use crate::error::{Doing, Result};
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
    half: ReceiverHalf,
}

impl Receiver {
    /// Of a connection that has just been accepted.
    ///
    /// # Errors
    /// The socket is none of TCP.
    pub fn new(socket: Socket, flow: usize, seed: u64, pattern: Pattern) -> Result<Self> {
        let has_ecn = tcp_info(&socket)?.has_ecn();
        Ok(Self {
            stream: Stream::new(seed, flow),
            socket,
            echoes: pattern == Pattern::PingPong,
            half: ReceiverHalf { flow, has_ecn, payload_ok: true, ..ReceiverHalf::default() },
        })
    }

    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    pub fn received_bytes(&self) -> u64 {
        self.half.received_bytes
    }

    /// Reads once and compares; false at the end of the stream, when nothing more will come.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn receive(&mut self, scratch: &mut [u8]) -> Result<bool> {
        let data = match (&self.socket).read(scratch) {
            Ok(0) => {
                self.half.finished_at_ns = Some(now_ns());
                return Ok(false);
            }
            Ok(bytes) => &scratch[..bytes],
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
            Err(error) => return Err(broken(self.half.flow, "the receiver", &error)),
        };
        self.half.payload_ok &= self.stream.matches(self.half.received_bytes, data);
        self.half.received_bytes += data.len() as u64;
        if self.echoes {
            let answered = (&self.socket).write_all(data);
            answered.map_err(|error| broken(self.half.flow, "the receiver", &error))?;
        }
        Ok(true)
    }

    /// Ends its own direction as well, which tells the sender that all has come.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn answer_end(&self) -> Result<()> {
        self.socket.shutdown(Shutdown::Write).doing(|| "answer the end of a flow".into())
    }

    /// Notes what has been received, at the start, the end, or between two phases.
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
