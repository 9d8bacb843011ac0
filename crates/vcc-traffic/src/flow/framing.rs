//! Messages on a byte stream: a header of 8 bytes, little-endian, from which both ends know the
//! length, and as many bytes of the flow's stream.

use crate::payload::{PIECE_MOST_BYTES, Stream};
use socket2::Socket;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice, Write};

pub(super) const HEADER_BYTES: usize = 8;

/// Reading and writing on a non-blocking socket.
pub(super) enum Io {
    Bytes(usize),
    NotNow,
}

pub(super) fn now_or_later(result: io::Result<usize>) -> io::Result<Io> {
    match result {
        Ok(bytes) => Ok(Io::Bytes(bytes)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(Io::NotNow),
        Err(error) => Err(error),
    }
}

#[derive(Debug, Clone, Copy)]
struct Message {
    header: u64,
    body_bytes: u64,
}

/// The side that sends.
#[derive(Debug, Default)]
pub(super) struct Writer {
    /// Oldest first.
    queue: VecDeque<Message>,
    /// Of the first one, with its header.
    written_bytes: u64,
    /// The bytes of the stream that were written.
    stream_bytes: u64,
    sent_bytes: u64,
}

impl Writer {
    /// All that was written.
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// Queues a message behind others.
    pub fn post(&mut self, header: u64, body_bytes: u64) {
        self.queue.push_back(Message { header, body_bytes });
    }

    /// Writes until the socket would block. Returns how many messages were completed.
    pub fn write(&mut self, mut socket: &Socket, stream: &Stream) -> io::Result<usize> {
        let mut whole = 0;
        while let Some(next) = self.queue.front() {
            let whole_bytes = HEADER_BYTES as u64 + next.body_bytes;
            let from = self.written_bytes;
            let header = &next.header.to_le_bytes()[(from as usize).min(HEADER_BYTES)..];
            let left_bytes = whole_bytes - from - header.len() as u64;
            let body =
                stream.bytes(self.stream_bytes, left_bytes.min(PIECE_MOST_BYTES as u64) as usize);
            let parts = [IoSlice::new(header), IoSlice::new(body)];
            let Io::Bytes(bytes) = now_or_later(socket.write_vectored(&parts))? else { break };
            self.sent_bytes += bytes as u64;
            self.stream_bytes += bytes.saturating_sub(header.len()) as u64;
            self.written_bytes += bytes as u64;
            if self.written_bytes == whole_bytes {
                self.queue.pop_front();
                self.written_bytes = 0;
                whole += 1;
            }
        }
        Ok(whole)
    }
}

/// The side that receives.
#[derive(Debug, Default)]
pub(super) struct Reader {
    header: [u8; HEADER_BYTES],
    header_bytes: usize,
    /// The bytes that are missing of the current message.
    left_bytes: u64,
    stream_bytes: u64,
}

/// What has been received.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Taken {
    /// Its bytes were right.
    pub is_right: bool,
    /// The header of the message that is complete.
    pub whole: Option<u64>,
}

impl Reader {
    pub fn is_between_messages(&self) -> bool {
        self.header_bytes == 0
    }

    /// Consumes data, not beyond the end of a message. `body_bytes` reads from the header how long a
    /// message is, if there is such a message.
    pub fn take(
        &mut self,
        stream: &Stream,
        data: &mut &[u8],
        body_bytes: impl FnOnce(u64) -> Option<u64>,
    ) -> io::Result<Taken> {
        if self.header_bytes < HEADER_BYTES {
            let bytes = data.len().min(HEADER_BYTES - self.header_bytes);
            self.header[self.header_bytes..][..bytes].copy_from_slice(&data[..bytes]);
            self.header_bytes += bytes;
            *data = &data[bytes..];
            if self.header_bytes < HEADER_BYTES {
                return Ok(Taken { is_right: true, whole: None });
            }
            let header = u64::from_le_bytes(self.header);
            self.left_bytes = body_bytes(header).ok_or_else(|| {
                let text = format!("a message with the header {header:#x}, which is none here");
                io::Error::new(ErrorKind::InvalidData, text)
            })?;
        }
        let bytes = (data.len() as u64).min(self.left_bytes) as usize;
        let is_right = stream.matches(self.stream_bytes, &data[..bytes]);
        self.stream_bytes += bytes as u64;
        self.left_bytes -= bytes as u64;
        *data = &data[bytes..];
        let whole = (self.left_bytes == 0).then(|| u64::from_le_bytes(self.header));
        if whole.is_some() {
            self.header_bytes = 0;
        }
        Ok(Taken { is_right, whole })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_header_is_reported_when_it_is_complete() {
        let mut reader = Reader::default();
        let stream = Stream::new(1, 0);
        let nothing = Taken { is_right: true, whole: None };
        assert_eq!(reader.take(&stream, &mut &[0x2a; 7][..], |_| None).unwrap(), nothing);
        assert!(!reader.is_between_messages());
        let error = reader.take(&stream, &mut &[0][..], |_| None).unwrap_err();
        assert!(error.to_string().contains("the header 0x2a2a2a2a2a2a2a"), "{error}");
    }

    #[test]
    fn a_message_without_a_body_is_its_header() {
        let mut reader = Reader::default();
        let mut data: &[u8] = &[5, 0, 0, 0, 0, 0, 0, 0, 9];
        let taken = reader.take(&Stream::new(1, 0), &mut data, |_| Some(0)).unwrap();
        assert_eq!((taken.whole, data.len()), (Some(5), 1));
        assert!(reader.is_between_messages());
    }
}
