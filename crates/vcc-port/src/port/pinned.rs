//! Ports that outlive the process that attached them.

use std::sync::Arc;

use super::{Port, Seat, other_version};
use crate::device::{self, Device};
use crate::host::Found;
use crate::pins::{self, Pin, Role};
use crate::{Error, Host, Result, bpffs, params, ring};

impl Port {
    /// The pinned attachment to a device of the calling thread's network namespace.
    pub fn open(device: &str) -> Result<Self> {
        let device = Device::named(device)?;
        let pin = pins::find(&device)?;
        Self::from_pin(pin.ok_or(Error::NotAttached { device: device.name })?, pinned_host()?)
    }

    /// All pinned attachments, also those of other network namespaces, except those that are being
    /// created or removed at this moment.
    pub fn list() -> Result<Vec<Self>> {
        Self::list_at(pinned_host()?)
    }

    /// Likewise; the ports use this value of their host.
    pub fn list_of(host: &Arc<Host>) -> Result<Vec<Self>> {
        Self::list_at(Some(Arc::clone(host)))
    }

    fn list_at(host: Option<Arc<Host>>) -> Result<Vec<Self>> {
        let mut ports = Vec::new();
        for pin in pins::all()?.into_iter().filter(Pin::is_complete) {
            match Self::from_pin(pin.clone(), host.clone()) {
                Ok(port) => ports.push(port),
                Err(_) if !pin.is_complete() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(ports)
    }

    /// An error if another version of vcc pinned a port.
    pub fn require_understood() -> Result<()> {
        let host = pinned_host()?;
        let ours = |pin: &Pin| pin.index.is_some() && host.is_some();
        match pins::all()?.into_iter().find(|pin| pin.is_complete() && !ours(pin)) {
            Some(pin) => Err(other_version(&pin.device)),
            None => Ok(()),
        }
    }

    /// Removes the pins of devices that have gone, and returns what their flows held of pools.
    /// Returns the devices' names. Also ends the traces of processes that were killed.
    pub fn sweep() -> Result<Vec<String>> {
        let host = pinned_host()?;
        let gone = pins::sweep(|pin| {
            if let (Some(host), Some(index)) = (&host, pin.index) {
                // What is left expires, and no port gets the index before.
                let _ = host.leave(index);
            }
        })?;
        for pin in pins::all()? {
            // A port that is being created or removed at this moment has no trace to end.
            if let Ok(port) = Self::from_pin(pin, host.clone()) {
                port.end_orphaned_trace()?;
            }
        }
        Host::remove_unused()?;
        Ok(gone)
    }

    /// A port that is detached meanwhile has none.
    pub(super) fn end_orphaned_trace(&self) -> Result<()> {
        let (Some(seat), Some(pin)) = (&self.seat, &self.pin) else { return Ok(()) };
        let end = || {
            if self.params()?.0.trace == 0 {
                return Ok(());
            }
            let Some(_role) = pin.take(Role::Tracing)? else { return Ok(()) };
            ring::remove(&seat.host.maps.traces, seat.index)?;
            self.change_params(|params| params.0.trace = 0)
        };
        end().or_else(|error| if pin.is_of(&self.links) { Err(error) } else { Ok(()) })
    }

    fn from_pin(pin: Pin, host: Option<Arc<Host>>) -> Result<Self> {
        let mut device = pin.device.clone();
        if device.netns_inode == device::netns_inode()? {
            device.name = device::name_of(device.ifindex).unwrap_or(device.name);
        }
        let links = pin.open_links()?;
        let seat = host.zip(pin.index).map(|(host, index)| {
            let generation = params::read(&host.maps.ports, index)?.generation;
            Ok(Seat { host, index, generation })
        });
        let seat = seat.transpose()?;
        Ok(Self { device, links, seat, pin: Some(pin) })
    }
}

/// None if there is none, or another version's.
fn pinned_host() -> Result<Option<Arc<Host>>> {
    if !bpffs::has_home()? {
        bpffs::require_lasting()?;
        return Ok(None);
    }
    Ok(match Host::find()? {
        Found::Ours(host) => Some(host),
        Found::OtherVersion | Found::None => None,
    })
}
