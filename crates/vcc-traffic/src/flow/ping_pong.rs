//! A message, its echo, the next message: the response time that an application sees, including
//! both hosts' TCP and loss recovery. AC/DC measured its RTTs this way, with sockperf (5,
//! "Experiment details").

use crate::payload::Stream;
use crate::system::now_ns;
use socket2::Socket;
use std::io::{self, ErrorKind, Read, Write};

/// The default of sockperf.
const MESSAGE_BYTES: usize = 14;

/// The side that asks.
#[derive(Debug, Default)]
pub struct PingPong {
    sent_bytes: u64,
    echoed_bytes: u64,
    asked_ns: u64,
}

/// The result of going on until the socket would block.
pub struct Turns {
    pub payload_ok: bool,
    /// Times when a message left and when all of its echo was there.
    pub answers: Vec<(u64, u64)>,
}

impl PingPong {
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// Whether an echo is awaited.
    pub fn awaits_echo(&self) -> bool {
        self.echoed_bytes < self.sent_bytes
    }

    /// Continues at the sender's side. `scratch` has room for a message.
    pub fn play(
        &mut self,
        mut sender: &Socket,
        stream: &Stream,
        may_ask: bool,
        scratch: &mut [u8],
    ) -> io::Result<Turns> {
        let mut turns = Turns { payload_ok: true, answers: Vec::new() };
        loop {
            let awaited = (self.sent_bytes - self.echoed_bytes) as usize;
            if awaited > 0 {
                let bytes = match sender.read(&mut scratch[..awaited]) {
                    Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                    Ok(bytes) => bytes,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(turns),
                    Err(error) => return Err(error),
                };
                turns.payload_ok &= stream.matches(self.echoed_bytes, &scratch[..bytes]);
                self.echoed_bytes += bytes as u64;
                if bytes < awaited {
                    continue;
                }
                turns.answers.push((self.asked_ns, now_ns()));
            }
            if !may_ask {
                return Ok(turns);
            }
            self.asked_ns = now_ns();
            sender.write_all(stream.bytes(self.sent_bytes, MESSAGE_BYTES))?;
            self.sent_bytes += MESSAGE_BYTES as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::{Domain, Type};

    #[test]
    fn each_message_waits_for_the_echo_of_the_one_before() {
        let (sender, receiver) = Socket::pair(Domain::UNIX, Type::STREAM, None).unwrap();
        sender.set_nonblocking(true).unwrap();
        let stream = Stream::new(1, 0);
        let (mut game, mut scratch, mut echo) = (PingPong::default(), [0; 64], [0; 64]);
        let mut play = |may_ask| game.play(&sender, &stream, may_ask, &mut scratch).unwrap();
        assert!(play(true).answers.is_empty());
        assert!(play(true).answers.is_empty(), "nothing has come back");
        assert!(game.awaits_echo());
        let mut play = |may_ask| game.play(&sender, &stream, may_ask, &mut scratch).unwrap();
        let bytes = (&receiver).read(&mut echo).unwrap();
        assert_eq!(bytes, MESSAGE_BYTES);
        assert!(stream.matches(0, &echo[..bytes]));
        (&receiver).write_all(&echo[..5]).unwrap();
        assert!(play(true).answers.is_empty(), "half an echo is none");
        (&receiver).write_all(&echo[5..bytes]).unwrap();
        let turns = play(true);
        assert!(turns.payload_ok && turns.answers[0].1 >= turns.answers[0].0);
        (&receiver).write_all(&[0; MESSAGE_BYTES]).unwrap();
        let turns = play(false);
        assert_eq!((turns.payload_ok, turns.answers.len()), (false, 1));
        assert_eq!(game.sent_bytes(), 2 * MESSAGE_BYTES as u64, "who may not ask does not");
    }
}
