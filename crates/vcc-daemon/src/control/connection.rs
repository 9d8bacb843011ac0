//! One connection, which is one request.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::protocol::{Answer, Request, SIGN_OF_LIFE_EVERY};
use super::{Abuse, Ask, peer};
use crate::journal;

/// For the whole request, so that no client holds a connection by sending a byte now and then.
const PATIENCE: Duration = Duration::from_secs(5);
/// Attaching to many new devices takes minutes.
const LONGEST_ANSWERING: Duration = Duration::from_secs(300);
const ENDING: &str = "the daemon is ending";

pub(super) struct Connection {
    stream: UnixStream,
    abuse: Abuse,
}

impl Connection {
    pub(super) fn new(stream: UnixStream, abuse: Abuse) -> Self {
        Self { stream, abuse }
    }

    pub(super) fn turn_away(&mut self) {
        self.reject("too many connections; try again");
    }

    pub(super) fn serve(&mut self, ask: &Ask) {
        let until = Instant::now() + PATIENCE;
        let request = match Request::read(&mut Patient { stream: &self.stream, until }) {
            Ok(Some(request)) => request,
            // The client only probed the socket.
            Ok(None) => return,
            Err(why) => return self.reject(&why),
        };
        let client = peer::name(&self.stream);
        match request {
            Request::Apply { .. } => journal::info!("{client} asks to apply a policy"),
            Request::Status | Request::Policy => journal::debug!("{client} asks: {request:?}"),
            Request::LogLevel { level } => {
                // At once, also while the daemon is busy with other requests.
                let answer = Answer::log_level(level);
                if let Some(level) = level {
                    journal::notice!("{client} sets the level of this log to {level}");
                }
                return self.send(&answer);
            }
        }
        let (answer, answers) = mpsc::channel();
        let answer = match ask(request, answer) {
            true => self.wait(&answers),
            false => Answer::refused(ENDING),
        };
        self.send(&answer);
    }

    /// Sends signs of life until the answer is there.
    fn wait(&mut self, answers: &Receiver<Answer>) -> Answer {
        let until = Instant::now() + LONGEST_ANSWERING;
        let _ = self.stream.set_write_timeout(Some(PATIENCE));
        while Instant::now() < until {
            match answers.recv_timeout(SIGN_OF_LIFE_EVERY) {
                Ok(answer) => return answer,
                Err(RecvTimeoutError::Disconnected) => return Answer::refused(ENDING),
                // A client that no longer listens may still want the request carried out.
                Err(RecvTimeoutError::Timeout) => drop(self.stream.write_all(b" ")),
            }
        }
        let waited_s = LONGEST_ANSWERING.as_secs();
        Answer::refused(format!(
            "the daemon has been busy with other work for {waited_s} s; it carries out this request afterwards"
        ))
    }

    fn reject(&mut self, why: &str) {
        self.abuse.note();
        journal::warning!("rejected a request of {}: {why}", peer::name(&self.stream));
        self.send(&Answer::refused(why));
    }

    /// A client that no longer listens misses the answer.
    fn send(&mut self, answer: &Answer) {
        let Ok(mut line) = serde_json::to_vec(answer) else { return };
        line.push(b'\n');
        let _ = self.stream.set_write_timeout(Some(PATIENCE));
        let _ = self.stream.write_all(&line);
    }
}

/// Reads until a time.
struct Patient<'a> {
    stream: &'a UnixStream,
    until: Instant,
}

impl Read for Patient<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let left = self.until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let why = format!("the request was not complete within {} s", PATIENCE.as_secs());
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
            self.stream.set_read_timeout(Some(left))?;
            match self.stream.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }
}
