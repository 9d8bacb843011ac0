//! Transfers, one after the other, each over a connection of its own. Their durations are the flow
//! completion times that papers measure, including handshake and slow start.

use super::{broken, end_has_come, tcp_info};
use crate::acknowledged;
use crate::error::{Error, Result};
use crate::pattern::{Transfers, Until};
use crate::payload::{PIECE_MOST_BYTES, Stream};
use crate::report::SenderHalf;
use crate::samples::{Begun, End};
use crate::system::now_ns;
use socket2::Socket;
use std::io::{self, ErrorKind, Write};
use std::net::Shutdown;

/// The sending half. Its byte stream continues over all transfers, of which each has a place in it.
#[derive(Debug)]
pub struct TransferSender {
    transfers: Transfers,
    stream: Stream,
    /// How far it has been written.
    position: u64,
    /// The socket of the current transfer, once it is connected.
    connection: Option<Socket>,
    half: SenderHalf,
}

impl TransferSender {
    pub fn new(transfers: Transfers, flow: usize, seed: u64) -> Self {
        let half = SenderHalf { flow, payload_ok: true, ..SenderHalf::default() };
        Self { transfers, stream: Stream::new(seed, flow), position: 0, connection: None, half }
    }

    /// Whether all transfers have begun.
    pub fn was_last(&self) -> bool {
        self.half.transfers.len() as u64 >= u64::from(self.transfers.count.get())
    }

    /// The connect of the next transfer begins.
    pub fn begin(&mut self) {
        self.position = self.half.transfers.len() as u64 * self.transfers.bytes.get();
        self.half.transfers.push(Begun { at_ns: now_ns(), bytes: self.transfers.bytes.get() });
    }

    /// Notes that the connection is established.
    ///
    /// # Errors
    /// The socket is not a TCP socket.
    pub fn connected(&mut self, socket: Socket) -> Result<()> {
        if self.half.connected_at_ns == 0 {
            self.half.connected_at_ns = now_ns();
        }
        self.half.has_ecn = tcp_info(&socket)?.has_ecn();
        if self.transfers.until == Until::Acknowledged {
            acknowledged::enable(&socket)?;
        }
        self.connection = Some(socket);
        Ok(())
    }

    /// Writes until the socket would block, and checks for the receiver's FIN; true when the transfer
    /// has ended, by that or, where it may be reset, by a RST.
    ///
    /// # Errors
    /// The connection ended although it must not, or delivered unexpected data.
    pub fn advance(&mut self, scratch: &mut [u8]) -> Result<bool> {
        match self.go_on(scratch) {
            Ok(true) => self.finish(true),
            Err(Error::Broken { .. }) if self.transfers.may_be_reset() => self.finish(false),
            other => other,
        }
    }

    fn go_on(&mut self, scratch: &mut [u8]) -> Result<bool> {
        let Some(socket) = &self.connection else { return Ok(false) };
        let end_bytes = self.half.transfers.len() as u64 * self.transfers.bytes.get();
        let failed = |error: io::Error| broken(self.half.flow, "the sender", error);
        while self.position < end_bytes {
            let bytes = (end_bytes - self.position).min(PIECE_MOST_BYTES as u64) as usize;
            match (&mut &*socket).write(self.stream.bytes(self.position, bytes)) {
                Ok(bytes) => {
                    self.position += bytes as u64;
                    self.half.sent_bytes += bytes as u64;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(failed(error)),
            }
            if self.position == end_bytes {
                socket.shutdown(Shutdown::Write).map_err(failed)?;
            }
        }
        if self.transfers.until == Until::Acknowledged && !self.is_acknowledged() {
            if !acknowledged::is_all(socket)? {
                return Ok(false);
            }
            self.half.transfers_acknowledged_at_ns.push(now_ns());
        }
        end_has_come(socket, self.half.flow, scratch)
    }

    /// Has the end of the current transfer been noted?
    fn is_acknowledged(&self) -> bool {
        self.half.transfers_acknowledged_at_ns.len() >= self.half.transfers.len()
    }

    fn finish(&mut self, is_whole: bool) -> Result<bool> {
        let Some(socket) = self.connection.take() else { return Ok(false) };
        let at_ns = now_ns();
        self.half.finished_at_ns = Some(at_ns);
        if self.transfers.may_be_reset() {
            let number = self.half.transfers.len() as u32 - 1;
            self.half.transfer_ends.insert(number, End { at_ns, is_whole });
        }
        self.count(&socket)?;
        Ok(true)
    }

    fn count(&mut self, socket: &Socket) -> Result<()> {
        let info = tcp_info(socket)?;
        self.half.retransmitted_segs += u64::from(info.total_retrans_segs);
        self.half.retransmitted_bytes += info.retrans_bytes;
        self.half.sent_segs += u64::from(info.data_segs_out);
        Ok(())
    }

    /// # Errors
    /// The state of the socket of a transfer that is still under way cannot be read.
    pub fn into_half(mut self) -> Result<SenderHalf> {
        if let Some(socket) = self.connection.take() {
            self.count(&socket)?;
        }
        Ok(self.half)
    }
}
