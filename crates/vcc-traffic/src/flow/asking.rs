//! The end of a flow of requests that asks. On the wire, a request is the number of its kind and as
//! many bytes as the kind has; so is a response.

use super::framing::{Reader, Writer};
use super::{answers, broken, tcp_info};
use crate::error::{Error, Result};
use crate::payload::Stream;
use crate::report::SenderHalf;
use crate::requests::Kind;
use crate::samples::Response;
use crate::system::now_ns;
use crate::tcp_info::TcpInfo;
use socket2::Socket;
use std::io::{ErrorKind, Read};

/// Has one request at a time. Its byte streams continue over all connections.
#[derive(Debug)]
pub struct Asker<'a> {
    kinds: &'a [Kind],
    stream: Stream,
    answers: Stream,
    writer: Writer,
    reader: Reader,
    connection: Option<Socket>,
    /// The current connection when the measurement window or the connection began.
    start: TcpInfo,
    asked: Option<Asked>,
    /// The start of the measurement window, once it has begun.
    start_ns: Option<u64>,
    received_bytes: u64,
    half: SenderHalf,
}

#[derive(Debug, Clone, Copy)]
struct Asked {
    kind: usize,
    at_ns: u64,
}

impl<'a> Asker<'a> {
    pub fn new(kinds: &'a [Kind], flow: usize, seed: u64) -> Self {
        Self {
            kinds,
            stream: Stream::new(seed, flow),
            answers: answers(seed, flow),
            writer: Writer::default(),
            reader: Reader::default(),
            connection: None,
            start: TcpInfo::default(),
            asked: None,
            start_ns: None,
            received_bytes: 0,
            half: SenderHalf { flow, payload_ok: true, ..SenderHalf::default() },
        }
    }

    /// # Errors
    /// The socket is not a TCP socket.
    pub fn connected(&mut self, socket: Socket) -> Result<()> {
        if self.half.connected_at_ns == 0 {
            self.half.connected_at_ns = now_ns();
        }
        self.half.has_ecn = tcp_info(&socket)?.has_ecn();
        self.connection = Some(socket);
        Ok(())
    }

    /// Begins a request, which leaves when it is connected.
    ///
    /// # Errors
    /// The request before it has no response yet.
    pub fn ask(&mut self, kind: usize) -> Result<()> {
        if self.asked.is_some() {
            return Err(self.failed("a request is made before the response to the last one"));
        }
        self.asked = Some(Asked { kind, at_ns: now_ns() });
        self.writer.post(kind as u64, self.kinds[kind].request_bytes);
        Ok(())
    }

    /// Writes and reads until the socket would block, or a response is complete; then true.
    ///
    /// # Errors
    /// The connection is gone, or brought something else than the response.
    pub fn advance(&mut self, scratch: &mut [u8]) -> Result<bool> {
        let Some(socket) = &self.connection else { return Ok(false) };
        let flow = self.half.flow;
        let failed = |error: std::io::Error| broken(flow, "the client", error);
        self.writer.write(socket, &self.stream).map_err(failed)?;
        self.half.sent_bytes = self.writer.sent_bytes();
        loop {
            let mut data = match { socket }.read(scratch) {
                Ok(0) => return Err(self.failed(self.closed())),
                Ok(bytes) => {
                    self.received_bytes += bytes as u64;
                    &scratch[..bytes]
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(failed(error)),
            };
            let Some(Asked { kind, at_ns }) = self.asked else {
                return Err(self.failed("the server sent a response that nobody asked for"));
            };
            let body_bytes =
                |header| (header == kind as u64).then(|| self.kinds[kind].response_bytes);
            let taken = self.reader.take(&self.answers, &mut data, body_bytes);
            let taken = taken.map_err(failed)?;
            self.half.payload_ok &= taken.is_right;
            if !data.is_empty() {
                return Err(self.failed("the server sent more than the response"));
            }
            if taken.whole.is_some() {
                self.asked = None;
                self.note_response(at_ns);
                return Ok(true);
            }
        }
    }

    fn closed(&self) -> &'static str {
        match self.asked {
            Some(_) => "the server closed the connection before its response was complete",
            None => "the server closed the connection between requests",
        }
    }

    fn failed(&self, problem: &str) -> Error {
        Error::Flow { flow: self.half.flow, problem: problem.into() }
    }

    fn note_response(&mut self, asked_ns: u64) {
        let Some(start_ns) = self.start_ns else { return };
        self.half.answered += 1;
        if let Some(since_start_ns) = asked_ns.checked_sub(start_ns) {
            let took_ns = now_ns() - asked_ns;
            self.half.responses.push(Response { at_us: since_start_ns / 1000, took_ns });
        }
    }

    /// Ends the connection, between two requests.
    ///
    /// # Errors
    /// The socket's state cannot be read.
    pub fn close(&mut self) -> Result<()> {
        self.count()?;
        self.connection = None;
        self.start = TcpInfo::default();
        Ok(())
    }

    fn count(&mut self) -> Result<()> {
        let Some(socket) = self.connection.as_ref().filter(|_| self.start_ns.is_some()) else {
            return Ok(());
        };
        let (then, now) = (&self.start, tcp_info(socket)?);
        let half = &mut self.half;
        half.retransmitted_segs += u64::from(now.total_retrans_segs - then.total_retrans_segs);
        half.retransmitted_bytes += now.retrans_bytes - then.retrans_bytes;
        half.sent_segs += u64::from(now.data_segs_out - then.data_segs_out);
        Ok(())
    }

    /// The measurement window begins. Times are recorded relative to its start.
    ///
    /// # Errors
    /// The socket's state cannot be read.
    pub fn start_measuring(&mut self, start_ns: u64) -> Result<()> {
        self.start_ns = Some(start_ns);
        if let Some(socket) = &self.connection {
            self.start = tcp_info(socket)?;
        }
        Ok(())
    }

    /// Records the bytes received, at the start and the end of the window and between phases.
    pub fn note_bound(&mut self) {
        self.half.answers_at_bounds_bytes.push(self.received_bytes);
    }

    /// The measurement window has ended.
    ///
    /// # Errors
    /// A request has had no response for longer than this, or the socket's state cannot be read.
    pub fn finish(&mut self, timeout_ns: u64) -> Result<()> {
        if let Some(Asked { kind, at_ns }) = self.asked {
            let waited_ns = now_ns().saturating_sub(at_ns);
            if waited_ns > timeout_ns {
                let waited_ms = waited_ns / 1_000_000;
                let problem =
                    format!("a request of kind {kind} has had no response for {waited_ms} ms");
                return Err(self.failed(&problem));
            }
        }
        self.count()
    }

    pub fn into_half(self) -> SenderHalf {
        self.half
    }
}
