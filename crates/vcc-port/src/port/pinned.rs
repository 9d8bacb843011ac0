//! Ports that outlive the process that attached them.

use std::sync::Arc;

use super::{Port, Seat, other_version};
use crate::device::Device;
use crate::host::Found;
use crate::pins::{self, Pin, Role};
use crate::{Error, Host, Result, bpffs, params, ring};

impl Port {
    /// The pinned attachment to a device of the calling thread's network namespace.
    pub fn open(device: &str) -> Result<Self> {
        let device = Device::named(device)?;
        let pins = pins::all()?;
        let pin = pins.iter().find(|pin| pin.is_at(&device));
        let pin = pin.ok_or(Error::NotAttached { device: device.name })?;
        Self::from_pin(pin, &pins, pinned_host()?)
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
        let pins: Vec<Pin> = pins::all()?.into_iter().filter(Pin::is_complete).collect();
        let of_guests = pins::by_index(&pins);
        for pin in &pins {
            let siblings = pin.index.map_or(&[][..], |index| &of_guests[&index]);
            match Self::from_pin(pin, siblings.iter().copied(), host.clone()) {
                Ok(port) => ports.push(port),
                Err(_) if !pin.is_complete() => {}
                Err(error) => return Err(error),
            }
        }
        Self::show_once(&mut ports);
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
        for pin in &pins::all()? {
            // A port that is being created or removed at this moment has no trace to end.
            if let Ok(port) = Self::from_pin(pin, &[], host.clone()) {
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

    /// `siblings`: among them those of the other devices of the guest.
    fn from_pin<'pin>(
        pin: &Pin,
        siblings: impl IntoIterator<Item = &'pin Pin>,
        host: Option<Arc<Host>>,
    ) -> Result<Self> {
        let device = Device { name: pin.current_name()?, ..pin.device.clone() };
        let siblings = siblings.into_iter().filter(|it| it.is_sibling_of(pin));
        let others = siblings.map(Pin::current_name).collect::<Result<_>>()?;
        let links = pin.open_links()?;
        let seat = host.zip(pin.index).map(|(host, index)| {
            let generation = params::read(&host.maps.ports, index)?.generation;
            Ok(Arc::new(Seat { host, index, generation }))
        });
        let (seat, pin) = (seat.transpose()?, Some(pin.clone()));
        Ok(Self { device, links, seat, pin, others, shown_at: None })
    }
}

/// None if there is no host, or another version's.
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
