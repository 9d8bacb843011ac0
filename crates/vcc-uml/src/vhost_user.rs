//! The vhost-user protocol, as far as a network card of User-Mode Linux uses it: the guest's
//! requests, in order, with answers.
//!
//! Kicks are messages (in-band notifications), acknowledged when they have been processed. There
//! are no calls, the device's own messages: interrupts go through the guest's clock.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use crate::numbered::numbered;
use crate::system::{receive_with_fds, strange};

numbered! {
    /// VHOST_USER_*: the guest's requests.
    pub(crate) enum Request {
        GetFeatures = 1,
        SetFeatures = 2,
        SetOwner = 3,
        SetMemTable = 5,
        SetVringNum = 8,
        SetVringAddr = 9,
        SetVringBase = 10,
        GetVringBase = 11,
        GetProtocolFeatures = 15,
        SetProtocolFeatures = 16,
        SetVringEnable = 18,
        SetBackendFd = 21,
        GetConfig = 24,
        VringKick = 35,
    }
}

/// VHOST_USER_F_PROTOCOL_FEATURES: announces PROTOCOL_FEATURES.
pub(crate) const HAS_PROTOCOL_FEATURES: u64 = 1 << 30;
/// VHOST_USER_PROTOCOL_F_*: REPLY_ACK, BACKEND_REQ, CONFIG, INBAND_NOTIFICATIONS.
pub(crate) const PROTOCOL_FEATURES: u64 = 1 << 3 | 1 << 5 | 1 << 9 | 1 << 14;

const HEADER_BYTES: usize = 12;
/// The longest request is the memory table.
const PAYLOAD_MAX_BYTES: usize = 512;
const VERSION: u32 = 1;
const IS_ANSWER: u32 = 1 << 2;
const WANTS_ANSWER: u32 = 1 << 3;

#[derive(Debug)]
pub(crate) struct Asked {
    pub request: Request,
    pub payload: Vec<u8>,
    pub fds: Vec<OwnedFd>,
    wants_answer: bool,
}

impl Asked {
    pub fn word(&self, index: usize) -> u32 {
        let at = index * 4;
        let bytes = self.payload.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u32::from_ne_bytes)
    }

    pub fn long(&self, index: usize) -> u64 {
        u64::from(self.word(2 * index + 1)) << 32 | u64::from(self.word(2 * index))
    }
}

pub(crate) struct CardLine {
    stream: UnixStream,
}

impl CardLine {
    pub fn new(stream: UnixStream) -> Self {
        Self { stream }
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// None if the guest has closed the card.
    pub fn receive(&mut self) -> io::Result<Option<Asked>> {
        let mut header = [0; HEADER_BYTES];
        let Some(fds) = self.read(&mut header)? else { return Ok(None) };
        let word = |at: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|i| header[at + i]));
        let (number, flags, bytes) = (word(0), word(4), word(8) as usize);
        let request = Request::of(number)
            .ok_or_else(|| strange(format!("request {number} of vhost-user to its card")))?;
        if bytes > PAYLOAD_MAX_BYTES {
            return Err(strange(format!("{bytes} bytes with request {number} of vhost-user")));
        }
        let mut payload = vec![0; bytes];
        if self.read(&mut payload)?.is_none() {
            return Ok(None);
        }
        Ok(Some(Asked { request, payload, fds, wants_answer: flags & WANTS_ANSWER != 0 }))
    }

    /// Reads all of it; descriptors come with the first byte.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<Option<Vec<OwnedFd>>> {
        let mut all_fds = Vec::new();
        let mut done = 0;
        while done < buffer.len() {
            let (bytes, fds) = match receive_with_fds(&self.stream, &mut buffer[done..]) {
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
                result => result?,
            };
            if bytes == 0 {
                return Ok(None);
            }
            all_fds.extend(fds);
            done += bytes;
        }
        Ok(Some(all_fds))
    }

    pub fn answer(&mut self, request: Request, payload: &[u8]) -> io::Result<()> {
        let header = [request as u32, VERSION | IS_ANSWER, payload.len() as u32];
        let header: Vec<u8> = header.into_iter().flat_map(u32::to_ne_bytes).collect();
        match self.stream.write_all(&[header.as_slice(), payload].concat()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            result => result,
        }
    }

    /// Acknowledges a request without a reply of its own, if the guest wants that.
    pub fn done(&mut self, asked: &Asked) -> io::Result<()> {
        if asked.wants_answer { self.answer(asked.request, &0_u64.to_ne_bytes()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (CardLine, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        (CardLine::new(ours), theirs)
    }

    fn message(words: &[u32]) -> Vec<u8> {
        words.iter().copied().flat_map(u32::to_ne_bytes).collect()
    }

    #[test]
    fn requests_are_read_and_answered() {
        let (mut line, mut guest) = pair();
        guest.write_all(&message(&[8, 1 | WANTS_ANSWER, 8, 1, 256])).expect("written");
        let asked = line.receive().expect("read").expect("a request");
        assert_eq!(asked.request, Request::SetVringNum);
        assert_eq!((asked.word(0), asked.word(1), asked.word(2)), (1, 256, 0));
        assert_eq!(asked.long(0), 256 << 32 | 1);
        line.done(&asked).expect("answered");
        let mut answer = [0; 20];
        std::io::Read::read_exact(&mut guest, &mut answer).expect("an answer");
        assert_eq!(answer.to_vec(), message(&[8, VERSION | IS_ANSWER, 8, 0, 0]));
    }

    #[test]
    fn an_unknown_request_is_an_error_and_an_end_is_none() {
        let (mut line, mut guest) = pair();
        guest.write_all(&message(&[99, 1, 0])).expect("written");
        let error = line.receive().expect_err("no such request");
        assert!(error.to_string().contains("request 99"), "{error}");
        let (mut line, guest) = pair();
        drop(guest);
        assert!(line.receive().expect("an end").is_none());
    }
}
