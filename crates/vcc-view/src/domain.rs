//! Ports of `vcc domain`: each of these processes answers on a socket in the runtime directory.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use socket2::{Domain, SockAddr, Socket, Type};
use vcc_domain::{Ask, BadBytes, Reloaded, Seen, Status};
use vcc_engine::{FlowKey, FlowState};
use vcc_port::{Error, Flow, FlowId};

use crate::rule::RulesInForce;
use crate::runtime_dir::RuntimeDir;

/// A process that does not answer within this time is reported.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);
/// A reload judges all connections again.
const RELOAD_PATIENCE: Duration = Duration::from_secs(10);
/// Far more than the greatest table has.
const ANSWER_MAX_BYTES: u64 = 1 << 30;

/// What a process without a ledger does, before the reason.
pub const NO_PROMISES: &str = "acknowledges nothing that only this process has, so `split` acts as `hold` with \
    `retransmit`, and `receive = \"buffer\"` and `\"accept\"` as `\"ring\"`";

/// The socket on which the process of this tap or device serves its status.
pub fn status_socket(tap: &str) -> PathBuf {
    RuntimeDir::of_environment().domains().join(tap)
}

/// The socket of the guest's card at this tap, empty in front of a device; None if no process serves
/// it.
pub fn socket_of(tap: &str) -> Option<String> {
    DomainPort::find(tap)?.status.ok().map(|status| status.socket)
}

/// Does a process serve this tap or device?
pub fn serves_tap(tap: &str) -> bool {
    match connect(tap) {
        Ok(_) => true,
        Err(error) => is_silent(&error),
    }
}

/// The taps that processes have served; not all of these processes have to run still.
pub fn taps() -> Vec<String> {
    let entries = fs::read_dir(RuntimeDir::of_environment().domains());
    let entries = entries.into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// A port in user space, as of the time when it was read.
pub struct DomainPort {
    pub name: String,
    /// Or why it could not be read.
    pub status: Result<Status, String>,
}

impl DomainPort {
    /// All that answer, by name.
    pub fn list() -> Vec<Self> {
        let taps = taps();
        // One that hangs keeps no other waiting. The answers are read here, as the work of this thread.
        thread::scope(|scope| {
            let ask = |tap| scope.spawn(move || ask_status(tap, None));
            let asked: Vec<_> = taps.iter().map(String::as_str).map(ask).collect();
            let answers = asked.into_iter().map(|answer| answer.join().expect("no panic"));
            let named = taps.iter().zip(answers);
            named.filter_map(|(tap, answer)| Some(Self::from_answer(tap, answer?))).collect()
        })
    }

    fn from_answer(name: &str, answer: io::Result<Vec<u8>>) -> Self {
        let status = status_of(answer)
            .map_err(|error| format!("cannot read the status of its `vcc domain`: {error}"));
        Self { name: name.to_owned(), status }
    }

    /// None without a process of this name.
    pub fn find(name: &str) -> Option<Self> {
        if name.contains('/') {
            return None;
        }
        Some(Self::from_answer(name, ask_status(name, None)?))
    }

    /// Reads it again.
    ///
    /// # Errors
    /// It is gone, or cannot be read.
    pub(crate) fn read_again(&mut self) -> Result<(), Error> {
        let gone = || Error::NotAttached { device: self.name.clone() };
        let Self { status, name } = Self::find(&self.name).ok_or_else(gone)?;
        let status =
            status.map_err(|why| Error::System { doing: format!("read `{name}`"), why })?;
        self.status = Ok(status);
        Ok(())
    }

    /// One of its flows, as of now.
    pub(crate) fn flow(&self, id: &FlowId) -> Result<Option<Flow>, Error> {
        let Some(answer) = ask_status(&self.name, Some(key_of(id))) else { return Ok(None) };
        let status = status_of(answer).map_err(|error| failed("read", &self.name, &error))?;
        Ok(status.flows.first().map(flow))
    }

    /// The file of its policy; None without one.
    pub fn policy(&self) -> Option<&str> {
        let policy = self.status.as_ref().ok().map(|status| &*status.policy);
        policy.filter(|path| !path.is_empty())
    }

    /// Has its process read its policy again. Returns the policy in force afterwards.
    ///
    /// # Errors
    /// Why the policy before it stays, or why that is unknown.
    pub fn reload(&self) -> Result<String, String> {
        let bytes =
            connect(&self.name).and_then(|stream| ask(stream, Ask::Reload, RELOAD_PATIENCE));
        let reloaded = bytes.and_then(|bytes| Reloaded::from_bytes(&bytes).map_err(foreign));
        reloaded.map_err(|error| format!("cannot ask its `vcc domain` to reload: {error}"))?.0
    }

    pub fn flows(&self) -> Vec<Flow> {
        self.seen().iter().map(flow).collect()
    }

    /// With what the port has of them.
    pub fn seen(&self) -> &[Seen] {
        self.status.as_ref().map_or(&[], |status| &status.flows)
    }

    /// The rules of its policy; None without one.
    pub fn rules(&self) -> Option<RulesInForce> {
        self.status.as_ref().ok().filter(|status| status.epoch != 0).map(RulesInForce::of_domain)
    }
}

pub(crate) fn flow(seen: &Seen) -> Flow {
    flow_of(&seen.key, seen.state)
}

pub(crate) fn flow_of(key: &FlowKey, state: FlowState) -> Flow {
    Flow { guest: key.guest(), peer: key.peer(), vlan: key.vlan(), inside: key.is_inside(), state }
}

pub(crate) fn key_of(id: &FlowId) -> FlowKey {
    FlowKey::new(id.guest, id.peer, id.vlan)
}

/// Waits for nothing: a process that hangs accepts nobody, and its queue may be full.
pub(crate) fn connect(tap: &str) -> io::Result<UnixStream> {
    connect_to(&status_socket(tap))
}

fn connect_to(path: &Path) -> io::Result<UnixStream> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?;
    socket.connect(&SockAddr::unix(path)?)?;
    socket.set_nonblocking(false)?;
    Ok(UnixStream::from(OwnedFd::from(socket)))
}

/// Of an attempt to connect: is there a process, which does not answer?
fn is_silent(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

/// Its status, with all flows or this one, as bytes. None without a process.
fn ask_status(tap: &str, flow: Option<FlowKey>) -> Option<io::Result<Vec<u8>>> {
    match connect(tap) {
        Ok(stream) => Some(ask(stream, Ask::Status(flow), PATIENCE)),
        Err(error) if is_silent(&error) => {
            Some(Err(io::Error::other("it hangs: too many wait for its answer")))
        }
        Err(_) => None,
    }
}

fn status_of(answer: io::Result<Vec<u8>>) -> io::Result<Status> {
    Status::from_bytes(&answer?).map_err(foreign)
}

/// Waits for the answer until `patience` is over.
fn ask(mut stream: UnixStream, ask: Ask, patience: Duration) -> io::Result<Vec<u8>> {
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_read_timeout(Some(patience))?;
    let mut bytes = Vec::new();
    let answer = stream
        .write_all(&ask.to_bytes())
        .and_then(|()| stream.take(ANSWER_MAX_BYTES).read_to_end(&mut bytes));
    match answer {
        Ok(_) => Ok(bytes),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            Err(io::Error::other(format!("no answer within {} s", patience.as_secs())))
        }
        Err(error) => Err(error),
    }
}

pub(crate) fn foreign(_: BadBytes) -> io::Error {
    io::Error::other("it is of another version of vcc: restart it")
}

pub(crate) fn failed(doing: &str, tap: &str, error: &io::Error) -> Error {
    Error::System { doing: format!("{doing} `{tap}`"), why: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_whose_queue_is_full_keeps_nobody_waiting() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("tap0");
        assert!(!is_silent(&connect_to(&path).expect_err("no process")));
        let hangs = Socket::new(Domain::UNIX, Type::STREAM, None).expect("a socket");
        hangs.bind(&SockAddr::unix(&path).expect("a path")).expect("bound");
        hangs.listen(0).expect("a listener");
        let _first = connect_to(&path).expect("room for one");
        assert!(is_silent(&connect_to(&path).expect_err("no room")));
    }
}
