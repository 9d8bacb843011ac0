//! Activities at a port of one process at a time: recording ACKs, and sending to the guest.

use super::{Port, Seat};
use crate::pins::Role;
use crate::{Emitter, Error, FlowId, Result, Trace};

impl Port {
    /// Records each ACK of one connection, or of all. There can be one recording at a time.
    pub fn trace(&self, flow: Option<FlowId>) -> Result<Trace> {
        let Seat { host, index, generation } = self.seat()?;
        let role = match &self.pin {
            Some(pin) => {
                let role = pin.take_soon(Role::Tracing)?;
                Some(role.ok_or_else(|| self.already_traced())?)
            }
            None if self.params()?.0.trace != 0 => return Err(self.already_traced()),
            None => None,
        };
        Trace::start(&host.maps, *index, *generation, flow, role)
    }

    /// Sends to the guest what the engine decides. The port must have been attached with
    /// `emit`, and its device be in the calling thread's network
    /// namespace. There can be one emitter at a time.
    pub fn emitter(&self) -> Result<Emitter> {
        let device = || self.device.name.clone();
        let Seat { host, index, .. } = self.seat()?;
        if !self.is_here()? {
            return Err(Error::InOtherNamespace { device: device() });
        }
        if !self.emits()? {
            return Err(Error::NothingToEmit { device: device() });
        }
        let taken = || Error::AlreadyEmitting { device: device() };
        let role = match &self.pin {
            Some(pin) => Some(pin.take(Role::Emitting)?.ok_or_else(taken)?),
            None => None,
        };
        Emitter::start(&self.device, &host.maps, *index, role)
    }

    /// Whether the port needs an [`Emitter`].
    pub fn emits(&self) -> Result<bool> {
        Ok(self.params()?.0.emit != 0)
    }

    /// Sets whether the port needs an [`Emitter`]. Under a policy, the rules decide.
    pub fn set_emits(&self, emits: bool) -> Result<()> {
        self.change_params(|params| params.0.emit = emits.into())
    }

    fn already_traced(&self) -> Error {
        Error::AlreadyTraced { device: self.device.name.clone() }
    }
}
