//! One connection, which is one request.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

use super::protocol::{Answer, Request};
use super::{Abuse, peer};
use crate::event::Event;
use crate::{journal, policy_file};

/// For all of the request, so that nobody keeps a place by a byte now and then.
const PATIENCE: Duration = Duration::from_secs(5);
/// A policy's text is the longest there is.
const LONGEST_BYTES: usize = policy_file::LONGEST_BYTES;
/// Attaching to many new devices takes its time.
const LONGEST_ANSWERING: Duration = Duration::from_secs(300);

pub(super) struct Connection {
    stream: UnixStream,
    abuse: Abuse,
}

impl Connection {
    pub(super) fn new(stream: UnixStream, abuse: Abuse) -> Self {
        Self { stream, abuse }
    }

    pub(super) fn turn_away(&mut self) {
        self.reject("too many connections at a time; try again");
    }

    pub(super) fn serve(&mut self, events: &Sender<Event>) {
        let line = match self.line() {
            Ok(Some(line)) => line,
            // Somebody who only looks whether we are there.
            Ok(None) => return,
            Err(why) => return self.reject(&why),
        };
        let request: Request = match serde_json::from_slice(&line) {
            Ok(request) => request,
            Err(error) => return self.reject(&format!("no request that is known: {error}")),
        };
        if matches!(request, Request::Apply { .. }) {
            journal::info(&format!("{} asks for another policy", peer::name(&self.stream)));
        }
        let (answer, answers) = mpsc::channel();
        let gone = || Answer::refused("the daemon is ending");
        let answer = match events.send(Event::Asked { request, answer }) {
            Ok(()) => answers.recv_timeout(LONGEST_ANSWERING).unwrap_or_else(|_| gone()),
            Err(_) => gone(),
        };
        self.say(&answer);
    }

    /// None: the other end closed without a word.
    fn line(&mut self) -> Result<Option<Vec<u8>>, String> {
        let until = Instant::now() + PATIENCE;
        let mut line = Vec::new();
        let mut buffer = [0; 1 << 16];
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(format!("no whole request within {} s", PATIENCE.as_secs()));
            }
            self.stream.set_read_timeout(Some(left)).map_err(|e| e.to_string())?;
            let read = match self.stream.read(&mut buffer) {
                Ok(0) if line.is_empty() => return Ok(None),
                Ok(0) => return Err("the request has no end: a line each".into()),
                Ok(read) => &buffer[..read],
                Err(e) if is_for_now(&e) => continue,
                Err(e) => return Err(e.to_string()),
            };
            let end = read.iter().position(|&byte| byte == b'\n');
            line.extend_from_slice(&read[..end.unwrap_or(read.len())]);
            if line.len() > LONGEST_BYTES {
                return Err(format!("a request of more than {LONGEST_BYTES} bytes"));
            }
            if end.is_some() {
                return Ok(Some(line));
            }
        }
    }

    fn reject(&mut self, why: &str) {
        self.abuse.note();
        journal::warning(&format!("a request of {} was rejected: {why}", peer::name(&self.stream)));
        self.say(&Answer::refused(why));
    }

    /// Who does not listen misses it.
    fn say(&mut self, answer: &Answer) {
        let Ok(mut line) = serde_json::to_vec(answer) else { return };
        line.push(b'\n');
        let _ = self.stream.set_write_timeout(Some(PATIENCE));
        let _ = self.stream.write_all(&line);
    }
}

fn is_for_now(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}
