//! Ports of `vcc domain`: each of these processes answers on a socket in the runtime directory.

use std::fs;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use vcc_domain::{Seen, Status};
use vcc_port::Flow;

use crate::rule::RulesInForce;
use crate::runtime_dir::RuntimeDir;

/// A process that does not answer for so long is reported.
const PATIENCE: Duration = Duration::from_secs(2);
/// Far more than the greatest table has.
const STATUS_MAX_BYTES: u64 = 1 << 30;

/// The socket on which the process of this tap tells its status.
pub fn status_socket(tap: &str) -> PathBuf {
    RuntimeDir::of_environment().domains().join(tap)
}

/// The socket of the guest's card at this tap; None if no process serves it.
pub fn socket_of(tap: &str) -> Option<String> {
    DomainPort::find(tap)?.status.ok().map(|status| status.socket)
}

/// Tells each process of `vcc domain` that is under a policy to read it again, as SIGHUP does. Returns
/// the names of those that were told.
pub fn reload_all() -> Vec<String> {
    let told = |port: &DomainPort| {
        let status = port.status.as_ref().ok().filter(|status| status.epoch != 0);
        let process = status.and_then(|status| libc::pid_t::try_from(status.process).ok());
        // SAFETY: the call takes no pointers. Numbers that are not positive are no process.
        process.is_some_and(|it| it > 0 && unsafe { libc::kill(it, libc::SIGHUP) } == 0)
    };
    DomainPort::list().into_iter().filter(told).map(|port| port.name).collect()
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
        let Ok(entries) = fs::read_dir(RuntimeDir::of_environment().domains()) else {
            return Vec::new();
        };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut ports: Vec<Self> = names.filter_map(|name| Self::find(&name)).collect();
        ports.sort_by(|one, other| one.name.cmp(&other.name));
        ports
    }

    /// None if there is no process of this name.
    pub fn find(name: &str) -> Option<Self> {
        if name.contains('/') {
            return None;
        }
        let stream = UnixStream::connect(status_socket(name)).ok()?;
        let status = read(stream).map_err(|error| format!("cannot read its process: {error}"));
        Some(Self { name: name.to_owned(), status })
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
    let Seen { key, state, .. } = seen;
    Flow { guest: key.guest(), peer: key.peer(), vlan: key.vlan(), state: *state }
}

fn read(stream: UnixStream) -> io::Result<Status> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut bytes = Vec::new();
    stream.take(STATUS_MAX_BYTES).read_to_end(&mut bytes)?;
    let foreign = |_| io::Error::other("it is of another version of vcc");
    Status::from_bytes(&bytes).map_err(foreign)
}
