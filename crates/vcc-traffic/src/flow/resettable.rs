//! The receiving half of transfers whose connections may be reset ([`Until::Ended`]). A connection of
//! which this end has not heard that it ended may still be there when the next one begins.
//!
//! [`Until::Ended`]: crate::Until::Ended

use super::{broken, tcp_info};
use crate::error::{Doing, Error, Result};
use crate::pattern::Transfers;
use crate::payload::Stream;
use crate::report::ReceiverHalf;
use crate::samples::{End, Received};
use crate::system::now_ns;
use socket2::{Socket, TcpKeepalive};
use std::io::{ErrorKind, Read};
use std::net::Shutdown;
use std::time::Duration;

/// A RST may be lost on its way, and this end would wait for ever: it asks the other (RFC 9293,
/// 3.8.4).
const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(1);
/// A path that fails for as many seconds ends no connection.
const KEEP_ALIVE_PROBES: u32 = 60;

#[derive(Debug)]
pub struct ResettableReceiver {
    stream: Stream,
    transfers: Transfers,
    connections: Vec<Connection>,
    half: ReceiverHalf,
}

#[derive(Debug)]
struct Connection {
    socket: Socket,
    /// The transfer's.
    number: u32,
    received_bytes: u64,
}

impl ResettableReceiver {
    pub fn new(flow: usize, seed: u64, transfers: Transfers) -> Self {
        let half = ReceiverHalf { flow, payload_ok: true, ..ReceiverHalf::default() };
        Self { stream: Stream::new(seed, flow), transfers, connections: Vec::new(), half }
    }

    /// The connection of a transfer has just been accepted.
    ///
    /// # Errors
    /// The socket is not a TCP socket.
    pub fn accepted(&mut self, socket: Socket, number: u32) -> Result<()> {
        self.half.has_ecn = tcp_info(&socket)?.has_ecn();
        let often = TcpKeepalive::new().with_time(KEEP_ALIVE_AFTER);
        let often = often.with_interval(KEEP_ALIVE_AFTER).with_retries(KEEP_ALIVE_PROBES);
        socket.set_tcp_keepalive(&often).doing(|| "keep a connection alive".into())?;
        self.connections.push(Connection { socket, number, received_bytes: 0 });
        Ok(())
    }

    /// Reads once of each connection and compares. Connections that have ended are closed.
    ///
    /// # Errors
    /// One ended in order within its transfer.
    pub fn receive(&mut self, scratch: &mut [u8]) -> Result<()> {
        let mut place = 0;
        while place < self.connections.len() {
            match self.receive_of(place, scratch) {
                Ok(true) => place += 1,
                Ok(false) => self.end(place, true),
                Err(Error::Broken { .. }) => self.end(place, false),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// False at the end of the stream.
    fn receive_of(&mut self, place: usize, scratch: &mut [u8]) -> Result<bool> {
        let connection = &mut self.connections[place];
        let bytes = self.transfers.bytes.get();
        let data = match (&connection.socket).read(scratch) {
            Ok(0) if connection.received_bytes == bytes => return Ok(false),
            Ok(0) => {
                let Connection { number, received_bytes, .. } = connection;
                let problem =
                    format!("transfer {number} ended in order after {received_bytes} bytes");
                return Err(Error::Flow { flow: self.half.flow, problem });
            }
            Ok(bytes) => &scratch[..bytes],
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
            Err(error) => return Err(broken(self.half.flow, "the receiver", error)),
        };
        let begin = u64::from(connection.number) * bytes;
        let is_right = self.stream.matches(begin + connection.received_bytes, data);
        connection.received_bytes += data.len() as u64;
        self.half.payload_ok &= is_right && connection.received_bytes <= bytes;
        self.half.received_bytes += data.len() as u64;
        Ok(true)
    }

    fn end(&mut self, place: usize, is_whole: bool) {
        let Connection { socket, number, .. } = self.connections.swap_remove(place);
        let at_ns = now_ns();
        if is_whole {
            // Shows the sender that all was received. It may have been reset meanwhile.
            let _ = socket.shutdown(Shutdown::Write);
            self.half.finished_at_ns = Some(at_ns);
            self.half.transfers_ended_at_ns.push(at_ns);
        }
        self.half.transfer_ends.insert(number, End { at_ns, is_whole });
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
