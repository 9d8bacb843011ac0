//! Removing vcc from a device, at once or when no connection depends on it any more.

use vcc_engine::Mode;

use super::Port;
use crate::sweep::{self, Sweep};
use crate::{AttachOptions, Error, Result, lock, params};

impl Port {
    /// Detaches at once. Connections whose windows were translated become very slow: see
    /// [`Port::drain`]. Returns how many flows were forgotten. If another process has detached this
    /// port meanwhile, and perhaps attached another one, nothing is changed.
    pub fn detach(self) -> Result<u32> {
        let failed = |e| Error::system(format!("detach from `{}`", self.device.name), e);
        let _lock = self.pin.is_some().then(lock::pins).transpose()?;
        for link in &self.links {
            link.detach().map_err(failed)?;
        }
        // The flows return what they hold of pools here, because no program runs any more that
        // would.
        let forgotten = self.sweep.as_ref().map_or(Ok(0), |sweep| sweep::run(sweep, Sweep::Forget));
        if let Some(pin) = self.pin.as_ref().filter(|pin| pin.is_of(&self.links)) {
            pin.remove()?;
        }
        forgotten
    }

    /// Stops taking new connections. Returns how many of the existing ones still depend on the
    /// translation.
    pub fn drain(&self) -> Result<usize> {
        self.set_mode(Mode::Drain)?;
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
        self.change_params(|params| {
            let trace = params.0.trace;
            *params = options.params;
            params.0.trace = trace;
        })
    }

    /// Whether the port is draining: it takes no new connections.
    pub fn drains(&self) -> Result<bool> {
        Ok(params::read(&self.maps()?.params)?.0.mode == Mode::Drain.number())
    }
}
