//! The client of the control socket.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use socket2::{Domain, SockAddr, Socket, Type};

use super::protocol::{Answer, Applied, PolicyInForce, PolicyText, Request, Status};
use crate::RuntimeDir;
use crate::journal::LogLevel;

/// A daemon sends answers or signs of life more often than this, even on a busy host.
const PATIENCE: Duration = Duration::from_secs(5);

/// Sends requests to a daemon.
pub struct Client {
    socket: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("no daemon listens at {}: start one with `vcc run`", socket.display())]
    NoDaemon { socket: PathBuf },

    #[error(
        "the daemon at {} has not answered for {} s: it is stopped or hangs (`systemctl status vcc`); if it \
         continues, it will carry out the request",
        socket.display(), PATIENCE.as_secs()
    )]
    Silent { socket: PathBuf },

    #[error("not permitted to connect to the daemon at {}: run this as root", socket.display())]
    NotPermitted { socket: PathBuf },

    /// The findings in the policy, each with its place.
    #[error("{why}")]
    Refused { why: String, problems: Vec<String> },

    #[error("cannot talk to the daemon at {}: {source}", socket.display())]
    System { socket: PathBuf, source: io::Error },
}

impl Client {
    pub fn new(place: &RuntimeDir) -> Self {
        Self { socket: place.control() }
    }

    pub fn status(&self) -> Result<Status, ClientError> {
        match self.ask(&Request::Status)? {
            Answer::Status(status) => Ok(status),
            other => Err(self.misunderstood(other)),
        }
    }

    pub fn policy(&self) -> Result<PolicyInForce, ClientError> {
        match self.ask(&Request::Policy)? {
            Answer::Policy(policy) => Ok(policy),
            other => Err(self.misunderstood(other)),
        }
    }

    /// Applies a policy: its text with the name of its file, or else the file that the daemon was
    /// started with.
    pub fn apply(&self, policy: Option<(String, String)>) -> Result<Applied, ClientError> {
        let policy = policy.map(|(text, file_name)| PolicyText { text, file_name });
        match self.ask(&Request::Apply { policy })? {
            Answer::Applied(applied) => Ok(applied),
            other => Err(self.misunderstood(other)),
        }
    }

    /// Sets up to which level the daemon logs events, if there is one. Returns the level in force.
    pub fn log_level(&self, level: Option<LogLevel>) -> Result<LogLevel, ClientError> {
        match self.ask(&Request::LogLevel { level })? {
            Answer::LogLevel { level } => Ok(level),
            other => Err(self.misunderstood(other)),
        }
    }

    fn ask(&self, request: &Request) -> Result<Answer, ClientError> {
        self.exchange(request).map_err(|source| {
            let socket = self.socket.clone();
            match source.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                    ClientError::NoDaemon { socket }
                }
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                    ClientError::Silent { socket }
                }
                io::ErrorKind::PermissionDenied => ClientError::NotPermitted { socket },
                _ => ClientError::System { socket, source },
            }
        })
    }

    fn exchange(&self, request: &Request) -> io::Result<Answer> {
        let mut stream = self.connect()?;
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        // The daemon may have rejected the request, with a reason, before it had read all of it.
        let sent = stream.write_all(&line);
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer)?;
        if answer.is_empty() {
            sent?;
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_str(&answer)?)
    }

    /// With timeouts: if the daemon is stopped and its backlog full, connect() would block.
    fn connect(&self) -> io::Result<UnixStream> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.set_write_timeout(Some(PATIENCE))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.connect(&SockAddr::unix(&self.socket)?)?;
        Ok(socket.into())
    }

    fn misunderstood(&self, answer: Answer) -> ClientError {
        match answer {
            Answer::Refused { why, problems } => ClientError::Refused { why, problems },
            other => ClientError::System {
                socket: self.socket.clone(),
                source: io::Error::other(format!("unexpected answer: {other:?}")),
            },
        }
    }
}
