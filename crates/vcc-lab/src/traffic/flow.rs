//! One flow: a sender that has data for as long as it sends, a receiver that checks and counts it.

use super::payload::Stream;
use super::ping_pong::PingPong;
use super::result::{FlowResult, Received, Response, Sample};
use super::route_cwnd;
use super::senders::SenderView;
use super::socket::{accept, connect, limit_unsent};
use super::tcp_info::TcpInfo;
use super::{FlowSpec, Pattern};
use crate::error::{Doing, Error, Result};
use crate::hosts::{Hosts, Proxy};
use crate::system::now_ns;
use socket2::Socket;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsRawFd, RawFd};

/// One write; also the room for one read.
pub const CHUNK_BYTES: usize = 64 * 1024;

/// What a sender that shall leave may have in its socket beyond what it has sent. A socket's whole
/// buffer would go on for seconds after the last write.
const UNSENT_BYTES: u32 = 16 * 1024;

pub(super) struct Flow {
    number: usize,
    stream: Stream,
    sender: Socket,
    receiver: Socket,
    _proxy: Option<Proxy>,
    is_sending: bool,
    sent_bytes: u64,
    received_bytes: u64,
    /// None where the sender writes all it can.
    ping_pong: Option<PingPong>,
    result: FlowResult,
    start: TcpInfo,
    /// Once the window of measurement has begun.
    start_ns: Option<u64>,
}

impl Flow {
    /// Connects and accepts. Nothing is sent yet: data of one flow would delay or lose the
    /// handshake of the next.
    pub fn open(
        number: usize,
        spec: &FlowSpec,
        hosts: &Hosts,
        listener: &Socket,
        to: SocketAddr,
        seed: u64,
    ) -> Result<Self> {
        let guest = hosts.guest(spec.sender);
        if spec.has_route_cwnd {
            route_cwnd::make_known(guest, listener, to, &spec.congestion_control)?;
        }
        let proxy = spec.is_proxied.then(|| hosts.start_proxy(spec.sender, to)).transpose()?;
        let to = proxy.as_ref().map_or(to, Proxy::address);
        let sender = guest.inside(|| connect(to, &spec.congestion_control))?;
        let receiver = accept(listener)?;
        if spec.leaves_at_ns.is_some() {
            limit_unsent(&sender, UNSENT_BYTES)?;
        }
        let info = tcp_info(&sender)?;
        let result = FlowResult {
            guest_has_ecn: info.has_ecn(),
            peer_has_ecn: tcp_info(&receiver)?.has_ecn(),
            payload_ok: true,
            ..FlowResult::default()
        };
        Ok(Self {
            number,
            stream: Stream::new(seed, number),
            sender,
            receiver,
            _proxy: proxy,
            is_sending: false,
            sent_bytes: 0,
            received_bytes: 0,
            ping_pong: (spec.pattern == Pattern::PingPong).then(PingPong::default),
            result,
            start: info,
            start_ns: None,
        })
    }

    pub fn sender_fd(&self) -> RawFd {
        self.sender.as_raw_fd()
    }

    pub fn receiver_fd(&self) -> RawFd {
        self.receiver.as_raw_fd()
    }

    pub fn join(&mut self) {
        self.is_sending = true;
    }

    /// Writes no more; what was written is still sent.
    pub fn leave(&mut self) -> Result<()> {
        self.is_sending = false;
        self.sender.shutdown(Shutdown::Write).doing(|| "end a flow".into())
    }

    /// Writes until the socket takes no more, or until there is an answer to wait for.
    pub fn send(&mut self, scratch: &mut [u8]) -> Result<()> {
        if self.ping_pong.is_some() {
            return self.play(scratch);
        }
        while self.is_sending {
            self.stream.fill(self.sent_bytes, &mut scratch[..CHUNK_BYTES]);
            match (&self.sender).write(&scratch[..CHUNK_BYTES]) {
                Ok(bytes) => self.sent_bytes += bytes as u64,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(self.broken("the sender", &error)),
            }
        }
        Ok(())
    }

    /// Takes the answer, if it is there, and asks again.
    fn play(&mut self, scratch: &mut [u8]) -> Result<()> {
        let Some(game) = &mut self.ping_pong else { return Ok(()) };
        let played = game.play(&self.sender, &self.stream, self.is_sending, scratch);
        self.sent_bytes = game.sent_bytes();
        let turns = played.map_err(|error| self.broken("the sender", &error))?;
        self.result.payload_ok &= turns.payload_ok;
        let answers = turns.answers.into_iter().filter_map(|(asked_ns, answered_ns)| {
            let since_start_ns = asked_ns.checked_sub(self.start_ns?)?;
            Some(Response { at_us: since_start_ns / 1000, took_ns: answered_ns - asked_ns })
        });
        self.result.responses.extend(answers);
        Ok(())
    }

    /// Reads once and compares; false at the end of the stream. `scratch` holds what came, then
    /// what should have come.
    pub fn receive(&mut self, scratch: &mut [u8]) -> Result<bool> {
        let (data, expected) = scratch.split_at_mut(CHUNK_BYTES);
        let data = match (&self.receiver).read(data) {
            Ok(0) if !self.is_sending && self.received_bytes == self.sent_bytes => {
                return Ok(false);
            }
            Ok(0) => return Err(self.problem("the receiver saw the end of the connection")),
            Ok(bytes) => &data[..bytes],
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
            Err(error) => return Err(self.broken("the receiver", &error)),
        };
        self.result.payload_ok &= self.stream.matches(self.received_bytes, data, expected);
        self.received_bytes += data.len() as u64;
        if self.ping_pong.is_some() {
            let answered = (&self.receiver).write_all(data);
            answered.map_err(|error| self.broken("the receiver", &error))?;
        }
        Ok(true)
    }

    pub fn start_measuring(&mut self) -> Result<()> {
        self.start = tcp_info(&self.sender)?;
        self.start_ns = Some(now_ns());
        Ok(())
    }

    /// Notes what has been received, at the start, the end, or between two phases.
    pub fn note_bound(&mut self) {
        self.result.received_at_bounds_bytes.push(self.received_bytes);
    }

    pub fn note_received(&mut self, at_us: u64) {
        self.result.received_over_time.push(Received { at_us, bytes: self.received_bytes });
    }

    pub fn sample(&mut self, at_us: u64) -> Result<()> {
        if self.is_sending {
            let info = tcp_info(&self.sender)?;
            self.result.samples.push(Sample {
                at_us,
                cwnd_segs: info.snd_cwnd_segs,
                snd_wnd_bytes: info.snd_wnd_bytes,
                mss_bytes: info.snd_mss_bytes,
            });
        }
        Ok(())
    }

    pub fn finish(&mut self) -> Result<()> {
        let (then, now) = (&self.start, tcp_info(&self.sender)?);
        let result = &mut self.result;
        result.retransmitted_segs = (now.total_retrans_segs - then.total_retrans_segs).into();
        result.retransmitted_bytes = now.retrans_bytes - then.retrans_bytes;
        result.sent_segs = (now.data_segs_out - then.data_segs_out).into();
        Ok(())
    }

    /// The sender's socket for whoever wants to look at its state.
    pub fn view(&self) -> Result<SenderView> {
        SenderView::of(&self.sender)
    }

    pub fn into_result(self) -> FlowResult {
        self.result
    }

    fn broken(&self, end: &str, error: &std::io::Error) -> Error {
        self.problem(&format!("{end}'s socket failed: {error}"))
    }

    fn problem(&self, problem: &str) -> Error {
        Error::Traffic { flow: self.number, problem: problem.into() }
    }
}

fn tcp_info(socket: &Socket) -> Result<TcpInfo> {
    TcpInfo::of(socket).doing(|| "read TCP_INFO".into())
}
