//! One bulk flow: a sender that always has data, a receiver that checks and counts it.

use super::FlowSpec;
use super::payload::Stream;
use super::socket::{TcpInfo, accept, connect};
use crate::error::{Doing, Error, Result};
use crate::hosts::Hosts;
use socket2::Socket;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};

/// One write; also the room for one read.
pub const CHUNK_BYTES: usize = 64 * 1024;

/// The windows of a sender at one time.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// Since the start of the window of measurement.
    pub at_us: u64,
    pub send_window_bytes: u64,
    pub mss_bytes: u32,
}

impl Sample {
    pub fn send_window_segs(&self) -> f64 {
        self.send_window_bytes as f64 / f64::from(self.mss_bytes)
    }
}

#[derive(Debug, Clone)]
pub struct FlowResult {
    /// As the guest itself sees it, and as its peer does.
    pub guest_has_ecn: bool,
    pub peer_has_ecn: bool,
    pub payload_ok: bool,
    /// Within the window of measurement, as are the next three.
    pub received_bytes: u64,
    pub retransmitted_segs: u64,
    pub retransmitted_bytes: u64,
    pub sent_segs: u64,
    pub samples: Vec<Sample>,
}

pub(super) struct Flow {
    number: usize,
    stream: Stream,
    sender: Socket,
    receiver: Socket,
    sent_bytes: u64,
    received_bytes: u64,
    result: FlowResult,
    start: (u64, TcpInfo),
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
        let sender = guest.inside(|| connect(to, &spec.congestion_control))?;
        let receiver = accept(listener)?;
        let info = tcp_info(&sender)?;
        let result = FlowResult {
            guest_has_ecn: info.has_ecn(),
            peer_has_ecn: tcp_info(&receiver)?.has_ecn(),
            payload_ok: true,
            received_bytes: 0,
            retransmitted_segs: 0,
            retransmitted_bytes: 0,
            sent_segs: 0,
            samples: Vec::new(),
        };
        Ok(Self {
            number,
            stream: Stream::new(seed, number),
            sender,
            receiver,
            sent_bytes: 0,
            received_bytes: 0,
            result,
            start: (0, info),
        })
    }

    pub fn sender_fd(&self) -> RawFd {
        self.sender.as_raw_fd()
    }

    pub fn receiver_fd(&self) -> RawFd {
        self.receiver.as_raw_fd()
    }

    /// Writes until the socket takes no more.
    pub fn send(&mut self, scratch: &mut [u8]) -> Result<()> {
        loop {
            self.stream.fill(self.sent_bytes, &mut scratch[..CHUNK_BYTES]);
            match (&self.sender).write(&scratch[..CHUNK_BYTES]) {
                Ok(bytes) => self.sent_bytes += bytes as u64,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(self.broken("the sender", &error)),
            }
        }
    }

    /// Reads once and compares. `scratch` holds what came, then what should have come.
    pub fn receive(&mut self, scratch: &mut [u8]) -> Result<()> {
        let (data, expected) = scratch.split_at_mut(CHUNK_BYTES);
        match (&self.receiver).read(data) {
            Ok(0) => Err(self.problem("the receiver saw the end of the connection")),
            Ok(bytes) => {
                let data = &data[..bytes];
                self.result.payload_ok &= self.stream.matches(self.received_bytes, data, expected);
                self.received_bytes += bytes as u64;
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(self.broken("the receiver", &error)),
        }
    }

    pub fn start_measuring(&mut self) -> Result<()> {
        self.start = (self.received_bytes, tcp_info(&self.sender)?);
        Ok(())
    }

    pub fn sample(&mut self, at_us: u64) -> Result<()> {
        let info = tcp_info(&self.sender)?;
        self.result.samples.push(Sample {
            at_us,
            send_window_bytes: info.send_window_bytes(),
            mss_bytes: info.snd_mss_bytes,
        });
        Ok(())
    }

    pub fn finish(&mut self) -> Result<()> {
        let (received_bytes, then) = self.start;
        let now = tcp_info(&self.sender)?;
        let result = &mut self.result;
        result.received_bytes = self.received_bytes - received_bytes;
        result.retransmitted_segs = (now.total_retrans_segs - then.total_retrans_segs).into();
        result.retransmitted_bytes = now.retrans_bytes - then.retrans_bytes;
        result.sent_segs = (now.data_segs_out - then.data_segs_out).into();
        Ok(())
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
