//! One connection, which is one request.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use vcc_policy::text::shortened;

use super::protocol::{Answer, Request, SIGN_OF_LIFE_EVERY};
use super::{Abuse, Ask, peer};
use crate::{journal, policy_file};

/// For the whole request, so that no client holds a connection by sending a byte now and then.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest request is one with a policy's text.
const LONGEST_BYTES: usize = policy_file::LONGEST_BYTES;
/// PATH_MAX. Messages quote the name.
const LONGEST_FILE_NAME_BYTES: usize = 4096;
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
        let line = match self.line() {
            Ok(Some(line)) => line,
            // The client only probed the socket.
            Ok(None) => return,
            Err(why) => return self.reject(&why),
        };
        let request: Request = match serde_json::from_slice(&line) {
            Ok(request) => request,
            Err(error) => {
                let error = error.to_string();
                return self.reject(&format!("unknown request: {}", shortened(&error)));
            }
        };
        if let Request::Apply { policy: Some(policy) } = &request {
            if policy.file_name.len() > LONGEST_FILE_NAME_BYTES {
                return self.reject("file_name is longer than 4096 bytes");
            }
        }
        if matches!(request, Request::Apply { .. }) {
            journal::info(&format!("{} asks to apply a policy", peer::name(&self.stream)));
        }
        let (answer, answers) = mpsc::channel();
        let answer = match ask(request, answer) {
            true => self.wait(&answers),
            false => Answer::refused(ENDING),
        };
        self.say(&answer);
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

    /// None if the client closed the connection without sending anything.
    fn line(&mut self) -> Result<Option<Vec<u8>>, String> {
        let until = Instant::now() + PATIENCE;
        let mut line = Vec::new();
        let mut buffer = [0; 1 << 16];
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(format!(
                    "the request was not complete within {} s",
                    PATIENCE.as_secs()
                ));
            }
            self.stream.set_read_timeout(Some(left)).map_err(|e| e.to_string())?;
            let read = match self.stream.read(&mut buffer) {
                Ok(0) if line.is_empty() => return Ok(None),
                Ok(0) => return Err("the request does not end with a newline".into()),
                Ok(read) => &buffer[..read],
                Err(e) if is_for_now(&e) => continue,
                Err(e) => return Err(e.to_string()),
            };
            let end = read.iter().position(|&byte| byte == b'\n');
            line.extend_from_slice(&read[..end.unwrap_or(read.len())]);
            if line.len() > LONGEST_BYTES {
                return Err(format!("the request is longer than {LONGEST_BYTES} bytes"));
            }
            if end.is_some() {
                return Ok(Some(line));
            }
        }
    }

    fn reject(&mut self, why: &str) {
        self.abuse.note();
        journal::warning(&format!("rejected a request of {}: {why}", peer::name(&self.stream)));
        self.say(&Answer::refused(why));
    }

    /// A client that no longer listens misses the answer.
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
