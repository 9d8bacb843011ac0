//! Removing vcc from a device, at once or when no connection depends on it any more.

use vcc_engine::Mode;

use super::Port;
use crate::sweep::Sweep;
use crate::{AttachOptions, Error, Expedited, Host, Result, lock, params};

impl Port {
    /// Detaches at once. Connections whose windows were translated become very slow: see
    /// [`Port::drain`]. Returns how many flows were forgotten: none while another device of the guest
    /// is attached, which keeps them. If another process has detached this port meanwhile, and perhaps
    /// attached another one, nothing is changed.
    pub fn detach(self) -> Result<u32> {
        let _lock = self.pin.is_some().then(lock::pins).transpose()?;
        let is_pinned = self.pin.is_some();
        let _expedited = is_pinned.then(Expedited::begin);
        let forgotten = self.detach_locked()?;
        if is_pinned {
            Host::remove_unused_locked()?;
        }
        Ok(forgotten)
    }

    pub(super) fn detach_locked(mut self) -> Result<u32> {
        let failed = |e| Error::system(format!("detach from `{}`", self.device.name), e);
        for link in &self.links {
            link.detach().map_err(failed)?;
        }
        let is_ours = self.pin.as_ref().is_none_or(|pin| pin.is_of(&self.links));
        // The index may be another port's by now.
        let seat = if is_ours { self.last_seat() } else { None };
        let forgotten = seat.map_or(Ok(0), |seat| seat.leave());
        if let Some(pin) = self.pin.as_ref().filter(|_| is_ours) {
            pin.remove()?;
        }
        forgotten
    }

    /// Stops taking new connections, at all devices of the guest. Returns how many of the existing ones still depend on the
    /// translation.
    pub fn drain(&self) -> Result<usize> {
        self.set_mode(Mode::Drain)?;
        // Reading the table takes as long as all ports' flows need.
        if self.usage()?.flows == 0 {
            return Ok(0);
        }
        let counted = self.visit(Sweep::Count)?;
        if counted > 0 {
            return Ok(counted as usize);
        }
        // A flow that moved meanwhile was perhaps missed.
        Ok(self.flows()?.iter().filter(|flow| flow.depends_on_translation()).count())
    }

    /// The pinned attachment to a device, if it is draining.
    pub fn draining(device: &str) -> Result<Option<Self>> {
        let port = match Self::open(device) {
            Ok(port) => port,
            Err(Error::NotAttached { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let drains = port.params()?.0.mode == Mode::Drain.number();
        Ok(drains.then_some(port))
    }

    /// Takes new connections again, with these options except the size of the table. Existing
    /// connections keep their underlay.
    pub fn resume(&self, options: &AttachOptions) -> Result<()> {
        self.change(|port| {
            let trace = port.params.trace;
            port.params = options.params.0;
            port.params.trace = trace;
            params::look_into(port, options.inside);
        })
    }

    /// Whether the port is draining: it takes no new connections.
    pub fn drains(&self) -> Result<bool> {
        Ok(self.params()?.0.mode == Mode::Drain.number())
    }
}
