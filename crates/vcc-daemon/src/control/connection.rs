//! One connection, which is one request.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use vcc_policy::text::shortened;

use super::protocol::{Answer, Request, SIGN_OF_LIFE_EVERY};
use super::{Abuse, peer};
use crate::event::Event;
use crate::{journal, policy_file};

/// For all of the request, so that nobody keeps a place by a byte now and then.
const PATIENCE: Duration = Duration::from_secs(5);
/// A policy's text is the longest there is.
const LONGEST_BYTES: usize = policy_file::LONGEST_BYTES;
/// PATH_MAX. Messages repeat it.
const LONGEST_FILE_NAME_BYTES: usize = 4096;
/// Attaching to many new devices takes its time.
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
            Err(error) => {
                let error = error.to_string();
                return self.reject(&format!("no request that is known: {}", shortened(&error)));
            }
        };
        if let Request::Apply { policy: Some(policy) } = &request {
            if policy.file_name.len() > LONGEST_FILE_NAME_BYTES {
                return self.reject("a file's name of more than 4096 bytes");
            }
        }
        if matches!(request, Request::Apply { .. }) {
            journal::info(&format!("{} asks for another policy", peer::name(&self.stream)));
        }
        let (answer, answers) = mpsc::channel();
        let answer = match events.send(Event::Asked { request, answer }) {
            Ok(()) => self.wait(&answers),
            Err(_) => Answer::refused(ENDING),
        };
        self.say(&answer);
    }

    /// Lets the other end know meanwhile that there is somebody here.
    fn wait(&mut self, answers: &Receiver<Answer>) -> Answer {
        let until = Instant::now() + LONGEST_ANSWERING;
        let _ = self.stream.set_write_timeout(Some(PATIENCE));
        while Instant::now() < until {
            match answers.recv_timeout(SIGN_OF_LIFE_EVERY) {
                Ok(answer) => return answer,
                Err(RecvTimeoutError::Disconnected) => return Answer::refused(ENDING),
                // Who does not listen may still want it done.
                Err(RecvTimeoutError::Timeout) => drop(self.stream.write_all(b" ")),
            }
        }
        let waited_s = LONGEST_ANSWERING.as_secs();
        Answer::refused(format!(
            "the daemon has been at work on something else for {waited_s} s; what it was asked comes after"
        ))
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
