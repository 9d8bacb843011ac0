//! Ports that outlive the process that attached them.

use super::{Port, other_version};
use crate::device::{self, Device};
use crate::pins::{self, Pin, Role};
use crate::{Error, Result, lock, params};

impl Port {
    /// Lets the attachment outlive this value and this process.
    pub fn pin(&mut self) -> Result<()> {
        let _lock = lock::pins()?;
        self.pin_locked()
    }

    /// Pins all of them, or none.
    pub fn pin_all(ports: &mut [Self]) -> Result<()> {
        let _lock = lock::pins()?;
        let result = ports.iter_mut().try_for_each(Self::pin_locked);
        if result.is_err() {
            for pin in ports.iter_mut().filter_map(|port| port.pin.take()) {
                // The first error is reported; a later sweep removes what is left.
                let _ = pin.remove();
            }
        }
        result
    }

    fn pin_locked(&mut self) -> Result<()> {
        let pin = Pin::of(&self.device);
        let (Some(maps), Some(sweep)) = (&mut self.maps, &self.sweep) else {
            return Err(other_version(&self.device));
        };
        pin.create(&mut self.links, maps, sweep)?;
        self.pin = Some(pin);
        Ok(())
    }

    /// The pinned attachment to a device of the calling thread's network namespace.
    pub fn open(device: &str) -> Result<Self> {
        let device = Device::named(device)?;
        let pin = pins::find(&device)?;
        Self::from_pin(pin.ok_or(Error::NotAttached { device: device.name })?)
    }

    /// All pinned attachments, also those of other network namespaces, except those that are being
    /// created or removed at this moment.
    pub fn list() -> Result<Vec<Self>> {
        let mut ports = Vec::new();
        for pin in pins::all()?.into_iter().filter(Pin::is_complete) {
            match Self::from_pin(pin.clone()) {
                Ok(port) => ports.push(port),
                Err(_) if !pin.is_complete() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(ports)
    }

    /// An error if another version of vcc pinned a port.
    pub fn require_understood() -> Result<()> {
        for pin in pins::all()? {
            if pin.is_complete() && pin.open_maps()?.is_none() {
                return Err(other_version(&pin.device));
            }
        }
        Ok(())
    }

    /// Removes the pins of devices that have gone, and returns what their flows held of pools.
    /// Returns the devices' names. Also ends the traces of processes that were killed.
    pub fn sweep() -> Result<Vec<String>> {
        let gone = pins::sweep(|pin| {
            // A port that cannot be opened has no flows to forget.
            let port = Self::from_pin(pin.clone()).ok().filter(|port| port.maps.is_some());
            let _ = port.map(|port| port.forget_flows());
        })?;
        for pin in pins::all()? {
            // A port that is being created or removed at this moment has no trace to end.
            if let Ok(port) = Self::from_pin(pin) {
                port.end_orphaned_trace()?;
            }
        }
        Ok(gone)
    }

    fn end_orphaned_trace(&self) -> Result<()> {
        let (Some(maps), Some(pin)) = (&self.maps, &self.pin) else { return Ok(()) };
        if params::read(&maps.params)?.0.trace == 0 {
            return Ok(());
        }
        let Some(_role) = pin.take(Role::Tracing)? else { return Ok(()) };
        params::change(&maps.params, true, |params| params.0.trace = 0)
    }

    fn from_pin(pin: Pin) -> Result<Self> {
        let mut device = pin.device.clone();
        if device.netns_inode == device::netns_inode()? {
            device.name = device::name_of(device.ifindex).unwrap_or(device.name);
        }
        let links = pin.open_links()?;
        let maps = pin.open_maps()?;
        let sweep = pin.open_sweep();
        Ok(Self { device, links, maps, sweep, pin: Some(pin) })
    }
}
