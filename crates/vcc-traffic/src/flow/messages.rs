//! Messages of given sizes over one connection, each answered when all of it was received: requests
//! with data, or copies of files.
//!
//! On the wire, a message is its size in 8 bytes, little-endian, then as many bytes of the flow's
//! stream. The answer is one byte.

use super::framing::{Io, Reader, Taken, Writer, now_or_later};
use crate::payload::Stream;
use socket2::Socket;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};

const ANSWER: u8 = 1;

/// The side that sends messages.
#[derive(Debug, Default)]
pub struct Outbox {
    writer: Writer,
    /// The workers that posted the unanswered messages, oldest first.
    posted: VecDeque<usize>,
    /// How many of these were written completely.
    written: usize,
}

impl Outbox {
    /// All that was written.
    pub fn sent_bytes(&self) -> u64 {
        self.writer.sent_bytes()
    }

    /// Queues a message behind others.
    pub fn post(&mut self, worker: usize, bytes: u64) {
        self.posted.push_back(worker);
        self.writer.post(bytes, bytes);
    }

    /// Writes until the socket would block.
    pub fn write(&mut self, socket: &Socket, stream: &Stream) -> io::Result<()> {
        self.written += self.writer.write(socket, stream)?;
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
            answered.extend(self.posted.drain(..bytes));
        }
        Ok(())
    }
}

/// The side that answers.
#[derive(Debug, Default)]
pub struct Inbox(Reader);

impl Inbox {
    /// Receives and answers messages. Returns whether their bytes were right, and how many were
    /// completed.
    pub fn take(
        &mut self,
        mut socket: &Socket,
        stream: &Stream,
        mut data: &[u8],
    ) -> io::Result<(bool, usize)> {
        let (mut all_right, mut completed) = (true, 0);
        while !data.is_empty() {
            let Taken { is_right, whole } = self.0.take(stream, &mut data, Some)?;
            all_right &= is_right;
            if whole.is_some() {
                completed += 1;
                socket.write_all(&[ANSWER])?;
            }
        }
        Ok((all_right, completed))
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
