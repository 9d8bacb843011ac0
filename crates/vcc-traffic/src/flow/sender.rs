//! The sending half, which always has data to send.

use super::messages::Outbox;
use super::ping_pong::PingPong;
use super::{broken, end_has_come, tcp_info};
use crate::error::{Doing, Error, Result};
use crate::pattern::Pattern;
use crate::payload::{PIECE_MOST_BYTES, Stream};
use crate::report::SenderHalf;
use crate::samples::{Begun, Response, Sample};
use crate::socket::limit_unsent;
use crate::system::now_ns;
use crate::tcp_info::TcpInfo;
use socket2::Socket;
use std::io::{ErrorKind, Write};
use std::net::Shutdown;

/// The most unsent bytes in the socket of a sender that will leave. A full socket buffer would keep
/// it sending for seconds after the last write.
const UNSENT_BYTES: u32 = 16 * 1024;

#[derive(Debug)]
pub struct Sender {
    stream: Stream,
    socket: Socket,
    pattern: Pattern,
    is_sending: bool,
    /// None unless the pattern is ping-pong.
    ping_pong: Option<PingPong>,
    /// For messages.
    outbox: Option<Outbox>,
    /// The workers whose messages were answered since the last call of [`Self::take_answered`].
    answered: Vec<usize>,
    half: SenderHalf,
    start: TcpInfo,
    /// The start of the measurement window, once it has begun.
    start_ns: Option<u64>,
}

impl Sender {
    /// `socket` has just been connected. It does not send yet.
    ///
    /// # Errors
    /// The socket is not a TCP socket.
    pub fn new(socket: Socket, flow: usize, seed: u64, pattern: Pattern) -> Result<Self> {
        let start = tcp_info(&socket)?;
        Ok(Self {
            stream: Stream::new(seed, flow),
            socket,
            pattern,
            is_sending: false,
            ping_pong: (pattern == Pattern::PingPong).then(PingPong::default),
            outbox: matches!(pattern, Pattern::Messages(_)).then(Outbox::default),
            answered: Vec::new(),
            half: SenderHalf {
                flow,
                connected_at_ns: now_ns(),
                has_ecn: start.has_ecn(),
                payload_ok: true,
                ..SenderHalf::default()
            },
            start,
            start_ns: None,
        })
    }

    /// Limits the unsent data of a sender that will leave.
    ///
    /// # Errors
    /// setsockopt(2) failed.
    pub fn prepare_to_leave(&self) -> Result<()> {
        limit_unsent(&self.socket, UNSENT_BYTES)
    }

    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    pub fn is_sending(&self) -> bool {
        self.is_sending
    }

    pub fn sent_bytes(&self) -> u64 {
        self.half.sent_bytes
    }

    /// Starts to send.
    pub fn join(&mut self) {
        self.is_sending = self.pattern != Pattern::Idle;
    }

    /// Stops writing; data that was written is still sent.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn leave(&mut self) -> Result<()> {
        self.is_sending = false;
        self.socket.shutdown(Shutdown::Write).doing(|| "end a flow".into())
    }

    /// Writes until the socket would block, or an answer is awaited.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn send(&mut self, scratch: &mut [u8]) -> Result<()> {
        if self.ping_pong.is_some() {
            return self.play(scratch);
        }
        if self.outbox.is_some() {
            return self.exchange();
        }
        while self.is_sending {
            let piece = self.stream.bytes(self.half.sent_bytes, PIECE_MOST_BYTES);
            match (&self.socket).write(piece) {
                Ok(bytes) => {
                    self.half.sent_bytes += bytes as u64;
                    // A short write: the next one would block.
                    if bytes < piece.len() {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(broken(self.half.flow, "the sender", error)),
            }
        }
        Ok(())
    }

    /// Queues a worker's message behind others; for flows of messages only.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn post(&mut self, worker: usize, bytes: u64) -> Result<()> {
        let Some(outbox) = &mut self.outbox else {
            return Err(Error::Plan(format!("flow {} takes no messages", self.half.flow)));
        };
        outbox.post(worker, bytes);
        self.half.transfers.push(Begun { at_ns: now_ns(), bytes });
        self.exchange()
    }

    /// The workers whose messages have been answered since this was last called.
    pub fn take_answered(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.answered)
    }

    fn exchange(&mut self) -> Result<()> {
        let Some(outbox) = &mut self.outbox else { return Ok(()) };
        let read = outbox.read(&self.socket, &mut self.answered);
        let moved = read.and_then(|()| outbox.write(&self.socket, &self.stream));
        self.half.sent_bytes = outbox.sent_bytes();
        moved.map_err(|error| broken(self.half.flow, "the sender", error))
    }

    /// Takes the answer, if it is there, and asks again.
    fn play(&mut self, scratch: &mut [u8]) -> Result<()> {
        let Some(game) = &mut self.ping_pong else { return Ok(()) };
        let played = game.play(&self.socket, &self.stream, self.is_sending, scratch);
        self.half.sent_bytes = game.sent_bytes();
        let turns = played.map_err(|error| broken(self.half.flow, "the sender", error))?;
        self.half.payload_ok &= turns.payload_ok;
        let answers = turns.answers.into_iter().filter_map(|(asked_ns, answered_ns)| {
            let since_start_ns = asked_ns.checked_sub(self.start_ns?)?;
            Some(Response { at_us: since_start_ns / 1000, took_ns: answered_ns - asked_ns })
        });
        self.half.responses.extend(answers);
        Ok(())
    }

    /// After it has left: whether the receiver's FIN was received, which is recorded.
    ///
    /// # Errors
    /// The connection is gone, or delivered unexpected data.
    pub fn take_end(&mut self, scratch: &mut [u8]) -> Result<bool> {
        self.play(scratch)?;
        // It may arrive right after this check.
        if self.ping_pong.as_ref().is_some_and(PingPong::awaits_echo) {
            return Ok(false);
        }
        let has_come = end_has_come(&self.socket, self.half.flow, scratch)?;
        if has_come {
            self.half.finished_at_ns = Some(now_ns());
        }
        Ok(has_come)
    }

    /// The measurement window begins. Times are recorded relative to its start.
    ///
    /// # Errors
    /// The socket's state cannot be read.
    pub fn start_measuring(&mut self, start_ns: u64) -> Result<()> {
        self.start = tcp_info(&self.socket)?;
        self.start_ns = Some(start_ns);
        Ok(())
    }

    /// Records the windows while it sends.
    ///
    /// # Errors
    /// The socket's state cannot be read.
    pub fn sample(&mut self, at_us: u64) -> Result<()> {
        if self.is_sending {
            let info = tcp_info(&self.socket)?;
            self.half.samples.push(Sample {
                at_us,
                acked_bytes: info.bytes_acked,
                cwnd_segs: info.snd_cwnd_segs,
                snd_wnd_bytes: info.snd_wnd_bytes,
                mss_bytes: info.snd_mss_bytes,
                srtt_us: info.rtt_us,
                rto_us: info.rto_us,
            });
        }
        Ok(())
    }

    /// The measurement window has ended.
    ///
    /// # Errors
    /// The socket's state cannot be read.
    pub fn finish(&mut self) -> Result<()> {
        let (then, now) = (&self.start, tcp_info(&self.socket)?);
        let half = &mut self.half;
        half.retransmitted_segs = (now.total_retrans_segs - then.total_retrans_segs).into();
        half.retransmitted_bytes = now.retrans_bytes - then.retrans_bytes;
        half.sent_segs = (now.data_segs_out - then.data_segs_out).into();
        Ok(())
    }

    pub fn into_half(self) -> SenderHalf {
        self.half
    }
}
