//! The settings that user space writes for a port, and the parameters in them.

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use vcc_engine::{Mode, Params, sys};
use vcc_policy::Tunnels;

use crate::clock::now_s;
use crate::plain::{from_bytes, to_bytes};
use crate::{Error, Result, lock};

pub(crate) fn read(ports: &MapHandle, index: u32) -> Result<sys::vcc_port> {
    const DOING: &str = "read the port's parameters";
    ports
        .lookup(&index.to_ne_bytes(), MapFlags::ANY)
        .map_err(|e| Error::system(DOING, e))?
        .as_deref()
        .and_then(from_bytes)
        .ok_or_else(|| Error::layout(DOING))
}

pub(crate) fn write(ports: &MapHandle, index: u32, port: &sys::vcc_port) -> Result<()> {
    ports
        .update(&index.to_ne_bytes(), to_bytes(port), MapFlags::ANY)
        .map_err(|e| Error::system("write the port's parameters", e))
}

/// A port's entry.
pub(crate) struct Of<'map> {
    pub ports: &'map MapHandle,
    pub index: u32,
    pub generation: u32,
}

impl Of<'_> {
    /// Changes a port. A pinned one is changed under a lock, so that the changes of another process
    /// are not lost. Returns false if another port has the index by now.
    pub(crate) fn change(
        &self,
        pinned: bool,
        change: impl FnOnce(&mut sys::vcc_port),
    ) -> Result<bool> {
        let _lock = pinned.then(lock::pins).transpose()?;
        let mut port = read(self.ports, self.index)?;
        if port.generation != self.generation {
            return Ok(false);
        }
        let before = port;
        change(&mut port);
        if takes_more(&before, &port) {
            port.attached_s = now_s();
        }
        write(self.ports, self.index, &port)?;
        Ok(true)
    }
}

/// Does the port take connections now that it did not take before, so that there may be some that it
/// does not know?
fn takes_more(before: &sys::vcc_port, now: &sys::vcc_port) -> bool {
    let takes_new = |port: &sys::vcc_port| {
        let mode = port.params.mode;
        mode != Mode::Drain.number() && (port.by_policy != 0 || mode != Mode::Ignore.number())
    };
    let looks_into = |port: &sys::vcc_port| port.inside % sys::INSIDE_KNOWN;
    takes_new(now) && (!takes_new(before) || looks_into(now) & !looks_into(before) != 0)
}

/// A port takes new connections inside these tunnels. Those that it knows may depend on it, inside
/// any tunnel.
pub(crate) fn look_into(port: &mut sys::vcc_port, tunnels: Tunnels) {
    let known = Tunnels::from_bits(port.inside | (port.inside / sys::INSIDE_KNOWN));
    port.inside = tunnels.bits() | (known.bits() * sys::INSIDE_KNOWN);
}

/// The parameters in it.
pub(crate) fn from_port(port: &sys::vcc_port) -> Params {
    Params(port.params)
}
