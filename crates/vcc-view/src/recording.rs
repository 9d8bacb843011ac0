//! Recording the state that the engine infers, ACK by ACK, at ports of either kind.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use vcc_domain::{Accepted, Ask, Recorded, RecordedAck};
use vcc_port::{Error, FlowId, Trace, TraceEvent};

use crate::domain::{PATIENCE, connect, failed, flow_of, foreign, key_of};

/// A recording at one port, which ends when it is dropped. A port has one at a time.
pub enum Recording {
    Kernel(Box<Trace>),
    Domain(Stream),
}

/// From a process of `vcc domain`.
pub struct Stream {
    tap: String,
    stream: UnixStream,
    flow: Option<FlowId>,
    bytes: Vec<u8>,
    acks: VecDeque<RecordedAck>,
    lost: u64,
    has_ended: bool,
}

impl Recording {
    /// Waits up to `timeout` for the next ACK; None after the timeout, a signal, or the end.
    ///
    /// # Errors
    /// The port cannot be read.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<TraceEvent>, Error> {
        match self {
            Self::Kernel(trace) => trace.next(timeout),
            Self::Domain(stream) => stream.next(timeout),
        }
    }

    /// The recorded connection; None if all are recorded.
    pub fn flow(&self) -> Option<FlowId> {
        match self {
            Self::Kernel(trace) => trace.flow(),
            Self::Domain(stream) => stream.flow,
        }
    }

    /// The number of ACKs that came faster than they could be recorded.
    ///
    /// # Errors
    /// The port cannot be read.
    pub fn lost(&self) -> Result<u64, Error> {
        match self {
            Self::Kernel(trace) => trace.lost(),
            Self::Domain(stream) => Ok(stream.lost),
        }
    }

    /// Has the process that records ended?
    pub fn has_ended(&self) -> bool {
        matches!(self, Self::Domain(stream) if stream.has_ended)
    }
}

impl Stream {
    pub(crate) fn begin(tap: &str, flow: Option<FlowId>) -> Result<Self, Error> {
        // One that has just ended may not have been noticed yet, on a busy host for long.
        const TRIES: u32 = 100;
        for _ in 0..TRIES {
            let begun = Self::ask(tap, flow).map_err(|error| failed("record at", tap, &error))?;
            if let Some(stream) = begun {
                return Ok(stream);
            }
            thread::sleep(PATIENCE / 100);
        }
        Err(Error::AlreadyTraced { device: tap.to_owned() })
    }

    /// None: there is another recording.
    fn ask(tap: &str, flow: Option<FlowId>) -> io::Result<Option<Self>> {
        let mut stream = connect(tap)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(&Ask::Record(flow.as_ref().map(key_of)).to_bytes())?;
        let mut bytes = [0; Accepted::BYTES];
        stream.read_exact(&mut bytes)?;
        let accepted = Accepted::from_bytes(&bytes).map_err(foreign)?;
        let (bytes, acks) = (Vec::new(), VecDeque::new());
        let tap = tap.to_owned();
        let stream = Self { tap, stream, flow, bytes, acks, lost: 0, has_ended: false };
        Ok(accepted.0.then_some(stream))
    }

    fn next(&mut self, timeout: Duration) -> Result<Option<TraceEvent>, Error> {
        if self.acks.is_empty() && self.is_readable(timeout) {
            self.read().map_err(|error| failed("record at", &self.tap, &error))?;
        }
        let event =
            |RecordedAck { at_us, key, state }| TraceEvent { at_us, flow: flow_of(&key, state) };
        Ok(self.acks.pop_front().map(event))
    }

    fn is_readable(&self, timeout: Duration) -> bool {
        let timeout_ms = timeout.as_millis().try_into().unwrap_or(libc::c_int::MAX);
        let mut polled =
            libc::pollfd { fd: self.stream.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the call writes one pollfd, which `polled` is.
        unsafe { libc::poll(&mut polled, 1, timeout_ms) };
        polled.revents != 0
    }

    fn read(&mut self) -> io::Result<()> {
        let mut part = [0; 1 << 16];
        match self.stream.read(&mut part) {
            Ok(0) => self.has_ended = true,
            Ok(count) => self.bytes.extend_from_slice(&part[..count]),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => self.has_ended = true,
            Err(error) => return Err(error),
        }
        while let Some(Recorded { acks, lost }) = Recorded::take_from(&mut self.bytes) {
            self.acks.extend(acks);
            self.lost = lost;
        }
        Ok(())
    }
}
