//! The end of a flow of requests that responds.

use super::framing::{Reader, Writer};
use super::{answers, broken, tcp_info};
use crate::error::{Error, Result};
use crate::payload::Stream;
use crate::report::ReceiverHalf;
use crate::requests::Kind;
use crate::samples::Received;
use crate::system::now_ns;
use socket2::Socket;
use std::io::{ErrorKind, Read};

/// Serves one request at a time. Its byte streams continue over all connections.
#[derive(Debug)]
pub struct Answerer<'a> {
    kinds: &'a [Kind],
    stream: Stream,
    answers: Stream,
    writer: Writer,
    reader: Reader,
    socket: Option<Socket>,
    /// Each connection is for one request, and closed after its response.
    closes: bool,
    is_serving: bool,
    half: ReceiverHalf,
}

/// The result of going on until the socket would block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Served {
    /// All of a response has been written.
    pub has_responded: bool,
    /// The kind of a request that has come.
    pub request: Option<usize>,
}

impl<'a> Answerer<'a> {
    pub fn new(kinds: &'a [Kind], flow: usize, seed: u64, closes: bool) -> Self {
        Self {
            kinds,
            stream: Stream::new(seed, flow),
            answers: answers(seed, flow),
            writer: Writer::default(),
            reader: Reader::default(),
            socket: None,
            closes,
            is_serving: false,
            half: ReceiverHalf { flow, payload_ok: true, ..ReceiverHalf::default() },
        }
    }

    /// Continues with a connection that has just been accepted.
    ///
    /// # Errors
    /// It is not a TCP socket, or the connection before it is still in use.
    pub fn accepted(&mut self, socket: Socket) -> Result<()> {
        if self.socket.is_some() {
            return Err(self.failed("a connection began before the one before it had ended"));
        }
        self.half.has_ecn = tcp_info(&socket)?.has_ecn();
        self.socket = Some(socket);
        Ok(())
    }

    /// Begins the response to a request that has come.
    pub fn respond(&mut self, kind: usize) {
        self.writer.post(kind as u64, self.kinds[kind].response_bytes);
    }

    /// Writes and reads until the socket would block.
    ///
    /// # Errors
    /// The connection is gone, or brought something else than a request.
    pub fn advance(&mut self, scratch: &mut [u8]) -> Result<Served> {
        let mut served = Served::default();
        let Some(socket) = &self.socket else { return Ok(served) };
        let flow = self.half.flow;
        let failed = |error: std::io::Error| broken(flow, "the server", error);
        if self.writer.write(socket, &self.answers).map_err(failed)? > 0 {
            self.is_serving = false;
            served.has_responded = true;
            if self.closes {
                self.socket = None;
                return Ok(served);
            }
        }
        loop {
            let mut data = match { socket }.read(scratch) {
                Ok(0) if self.is_serving || !self.reader.is_between_messages() => {
                    let problem =
                        "the client closed the connection before its response was complete";
                    return Err(self.failed(problem));
                }
                Ok(0) => {
                    self.half.finished_at_ns = Some(now_ns());
                    self.socket = None;
                    return Ok(served);
                }
                Ok(bytes) => &scratch[..bytes],
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(served),
                Err(error) => return Err(failed(error)),
            };
            if self.is_serving {
                return Err(self.failed("the client asked again before it had its response"));
            }
            self.half.received_bytes += data.len() as u64;
            let body_bytes =
                |header: u64| Some(self.kinds.get(usize::try_from(header).ok()?)?.request_bytes);
            let taken = self.reader.take(&self.stream, &mut data, body_bytes);
            let taken = taken.map_err(failed)?;
            self.half.payload_ok &= taken.is_right;
            if let Some(kind) = taken.whole {
                self.is_serving = true;
                served.request = Some(kind as usize);
            }
            if !data.is_empty() {
                return Err(self.failed("the client asked again before it had its response"));
            }
        }
    }

    fn failed(&self, problem: &str) -> Error {
        Error::Flow { flow: self.half.flow, problem: problem.into() }
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
