//! Messages of given sizes over one connection, each answered when all of it was received: requests
//! with data, or copies of files.
//!
//! On the wire, a message is its size in 8 bytes, little-endian, then as many bytes of the flow's
//! stream. The answer is one byte.

use crate::payload::{PIECE_MOST_BYTES, Stream};
use socket2::Socket;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice, Read, Write};

const HEADER_BYTES: usize = 8;
const ANSWER: u8 = 1;

/// Reading and writing on a non-blocking socket.
enum Io {
    Bytes(usize),
    NotNow,
}

fn now_or_later(result: io::Result<usize>) -> io::Result<Io> {
    match result {
        Ok(bytes) => Ok(Io::Bytes(bytes)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(Io::NotNow),
        Err(error) => Err(error),
    }
}

#[derive(Debug, Clone, Copy)]
struct Posted {
    /// The worker that posted it.
    worker: usize,
    bytes: u64,
}

/// The side that sends messages.
#[derive(Debug, Default)]
pub struct Outbox {
    /// The unanswered messages, oldest first.
    posted: VecDeque<Posted>,
    /// How many of these were written completely, and how many bytes of the next one, with its
    /// header.
    written: usize,
    written_of_next_bytes: u64,
    /// The bytes of the stream that were written.
    stream_bytes: u64,
    sent_bytes: u64,
}

impl Outbox {
    /// All that was written.
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// Queues a message behind others.
    pub fn post(&mut self, worker: usize, bytes: u64) {
        self.posted.push_back(Posted { worker, bytes });
    }

    /// Writes until the socket would block.
    pub fn write(&mut self, mut socket: &Socket, stream: &Stream) -> io::Result<()> {
        while let Some(next) = self.posted.get(self.written) {
            let whole_bytes = HEADER_BYTES as u64 + next.bytes;
            let from = self.written_of_next_bytes;
            let header = &next.bytes.to_le_bytes()[(from as usize).min(HEADER_BYTES)..];
            let left_bytes = whole_bytes - from - header.len() as u64;
            let body =
                stream.bytes(self.stream_bytes, left_bytes.min(PIECE_MOST_BYTES as u64) as usize);
            let parts = [IoSlice::new(header), IoSlice::new(body)];
            let Io::Bytes(bytes) = now_or_later(socket.write_vectored(&parts))? else {
                return Ok(());
            };
            self.sent_bytes += bytes as u64;
            self.stream_bytes += bytes.saturating_sub(header.len()) as u64;
            self.written_of_next_bytes += bytes as u64;
            if self.written_of_next_bytes == whole_bytes {
                self.written += 1;
                self.written_of_next_bytes = 0;
            }
        }
        Ok(())
    }

    /// Receives answers, and records the workers whose messages they answer.
    pub fn read(&mut self, mut socket: &Socket, answered: &mut Vec<usize>) -> io::Result<()> {
        let mut answers = [0; 64];
        while self.written > 0 {
            let most = self.written.min(answers.len());
            let Io::Bytes(bytes) = now_or_later(socket.read(&mut answers[..most]))? else {
                return Ok(());
            };
            if bytes == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            self.written -= bytes;
            answered.extend(self.posted.drain(..bytes).map(|message| message.worker));
        }
        Ok(())
    }
}

/// The side that answers.
#[derive(Debug, Default)]
pub struct Inbox {
    header: [u8; HEADER_BYTES],
    header_bytes: usize,
    /// The bytes that are missing of the current message.
    left_bytes: u64,
    stream_bytes: u64,
}

impl Inbox {
    /// Receives and answers messages. Returns whether their bytes were right, and how many were
    /// completed.
    pub fn take(
        &mut self,
        mut socket: &Socket,
        stream: &Stream,
        mut data: &[u8],
    ) -> io::Result<(bool, usize)> {
        let (mut is_right, mut whole) = (true, 0);
        while !data.is_empty() {
            if self.header_bytes < HEADER_BYTES {
                let bytes = data.len().min(HEADER_BYTES - self.header_bytes);
                self.header[self.header_bytes..][..bytes].copy_from_slice(&data[..bytes]);
                self.header_bytes += bytes;
                data = &data[bytes..];
                self.left_bytes = u64::from_le_bytes(self.header);
            } else {
                let bytes = (data.len() as u64).min(self.left_bytes) as usize;
                is_right &= stream.matches(self.stream_bytes, &data[..bytes]);
                self.stream_bytes += bytes as u64;
                self.left_bytes -= bytes as u64;
                data = &data[bytes..];
            }
            if self.header_bytes == HEADER_BYTES && self.left_bytes == 0 {
                self.header_bytes = 0;
                whole += 1;
                socket.write_all(&[ANSWER])?;
            }
        }
        Ok((is_right, whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::{Domain, Type};

    fn ends() -> (Socket, Socket) {
        let (sender, receiver) = Socket::pair(Domain::UNIX, Type::STREAM, None).unwrap();
        sender.set_nonblocking(true).unwrap();
        receiver.set_nonblocking(true).unwrap();
        (sender, receiver)
    }

    /// Reads pieces of this size until the socket would block.
    fn receive(inbox: &mut Inbox, receiver: &Socket, stream: &Stream, at_a_time: usize) -> bool {
        let mut data = vec![0; at_a_time];
        let mut is_right = true;
        while let Io::Bytes(bytes) = now_or_later({ receiver }.read(&mut data)).unwrap() {
            is_right &= inbox.take(receiver, stream, &data[..bytes]).unwrap().0;
        }
        is_right
    }

    #[test]
    fn each_message_is_answered_when_all_of_it_has_come() {
        for at_a_time in [1, 7, 8, 9, 4096] {
            let (sender, receiver) = ends();
            let stream = Stream::new(1, 0);
            let (mut outbox, mut inbox) = (Outbox::default(), Inbox::default());
            let mut answered = Vec::new();
            for (worker, bytes) in [(0, 1), (4, 100), (0, 5000)] {
                outbox.post(worker, bytes);
            }
            outbox.write(&sender, &stream).unwrap();
            outbox.read(&sender, &mut answered).unwrap();
            assert!(answered.is_empty(), "nothing has been read yet");
            assert!(receive(&mut inbox, &receiver, &stream, at_a_time));
            outbox.read(&sender, &mut answered).unwrap();
            assert_eq!(answered, [0, 4, 0]);
            assert_eq!(outbox.sent_bytes(), 5101 + 3 * 8);
        }
    }

    #[test]
    fn a_message_that_does_not_fit_goes_on_later() {
        const BYTES: u64 = 4_000_000;
        let (sender, receiver) = ends();
        let stream = Stream::new(1, 0);
        let (mut outbox, mut inbox) = (Outbox::default(), Inbox::default());
        let mut answered = Vec::new();
        outbox.post(0, BYTES);
        let mut turns = 0;
        while answered.is_empty() {
            outbox.write(&sender, &stream).unwrap();
            assert!(receive(&mut inbox, &receiver, &stream, 65_536));
            outbox.read(&sender, &mut answered).unwrap();
            turns += 1;
        }
        assert!(turns > 1, "no socket takes so much");
        assert_eq!(outbox.sent_bytes(), BYTES + 8);
    }

    #[test]
    fn a_changed_byte_is_seen() {
        let (sender, receiver) = ends();
        let mut outbox = Outbox::default();
        outbox.post(0, 100);
        outbox.write(&sender, &Stream::new(2, 0)).unwrap();
        assert!(!receive(&mut Inbox::default(), &receiver, &Stream::new(1, 0), 4096));
    }
}
