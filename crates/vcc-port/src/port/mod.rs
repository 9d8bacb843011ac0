//! A device with vcc on it.

use std::io;

use libbpf_rs::{Link, MapCore};
use vcc_engine::{Mode, Params, sys};

use crate::datapath::Maps;
use crate::device::{self, Device};
use crate::pins::{self, Pin};
use crate::tcx::{self, Hook};
use crate::{
    AttachOptions, Counters, Datapath, Error, Flow, Result, counters, flows, kernel, params,
};

/// An attachment. Dropped, it is removed, unless it is pinned.
pub struct Port {
    device: Device,
    links: [Link; 2],
    maps: Maps,
    pin: Option<Pin>,
}

impl Port {
    /// Attaches to a device of the calling thread's network namespace: in both directions, or
    /// not at all. Programs that are there already stay, and run first.
    pub fn attach(device: &str, options: &AttachOptions) -> Result<Self> {
        let device = Device::named(device)?;
        device.require_ethernet()?;
        let revision = require_unattached(&device)?;
        let datapath = Datapath::load(options)?;
        // The revision makes the kernel refuse whoever lost a race of two attachments.
        let links = [
            attach_one(&datapath, &device, Hook::FromGuest, revision)?,
            attach_one(&datapath, &device, Hook::ToGuest, 0)?,
        ];
        Ok(Self { device, links, maps: datapath.maps, pin: None })
    }

    /// The attachment outlives this value and this process.
    pub fn pin(&mut self) -> Result<()> {
        let _lock = pins::lock()?;
        self.pin_locked()
    }

    /// Pins all of them, or none.
    pub fn pin_all(ports: &mut [Self]) -> Result<()> {
        let _lock = pins::lock()?;
        let result = ports.iter_mut().try_for_each(Self::pin_locked);
        if result.is_err() {
            for pin in ports.iter_mut().filter_map(|port| port.pin.take()) {
                // The error that is told is the first; the rest is swept up later.
                let _ = pin.remove();
            }
        }
        result
    }

    fn pin_locked(&mut self) -> Result<()> {
        let pin = Pin::of(&self.device);
        pin.create(&mut self.links, &mut self.maps)?;
        self.pin = Some(pin);
        Ok(())
    }

    /// The pinned attachment to a device of the calling thread's network namespace.
    pub fn open(device: &str) -> Result<Self> {
        let device = Device::named(device)?;
        let pin = pins::find(&device)?;
        Self::from_pin(pin.ok_or(Error::NotAttached { device: device.name })?)
    }

    /// All pinned attachments, those of other network namespaces too.
    pub fn list() -> Result<Vec<Self>> {
        pins::all()?.into_iter().map(Self::from_pin).collect()
    }

    /// Removes what devices that have gone left pinned; returns their names.
    pub fn sweep() -> Result<Vec<String>> {
        pins::sweep()
    }

    fn from_pin(pin: Pin) -> Result<Self> {
        let mut device = pin.device.clone();
        if device.netns_inode == device::netns_inode()? {
            device.name = device::name_of(device.ifindex).unwrap_or(device.name);
        }
        let links = pin.open_links()?;
        let maps = pin.open_maps()?;
        Ok(Self { device, links, maps, pin: Some(pin) })
    }

    /// Removes the attachment at once. Connections whose windows were translated will crawl:
    /// see [`Port::drain`].
    pub fn detach(self) -> Result<()> {
        let failed = |e| Error::system(format!("detach from `{}`", self.device.name), e);
        let _lock = self.pin.is_some().then(pins::lock).transpose()?;
        for link in &self.links {
            link.detach().map_err(failed)?;
        }
        if let Some(pin) = &self.pin {
            pin.remove()?;
        }
        Ok(())
    }

    /// Takes no new connections from now on, and says how many of those that are there still
    /// need the translation.
    pub fn drain(&self) -> Result<usize> {
        self.set_mode(Mode::Drain)?;
        Ok(self.flows()?.iter().filter(|flow| flow.depends_on_translation()).count())
    }

    /// The pinned attachment to a device, if there is one and it drains.
    pub fn draining(device: &str) -> Result<Option<Self>> {
        let port = match Self::open(device) {
            Ok(port) => port,
            Err(Error::NotAttached { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let drains = port.params()?.0.mode == Mode::Drain.number();
        Ok(drains.then_some(port))
    }

    /// Takes new connections again, with these options but for the table's size; those that are
    /// there keep the underlay with which they began.
    pub fn resume(&self, options: &AttachOptions) -> Result<()> {
        params::write(&self.maps.params, &options.params())
    }

    pub fn device(&self) -> &str {
        &self.device.name
    }

    /// How many connections this port tracks at a time.
    pub fn max_flows(&self) -> u32 {
        self.maps.flows.max_entries()
    }

    pub fn flows(&self) -> Result<Vec<Flow>> {
        flows::read(&self.maps.flows)
    }

    pub fn counters(&self) -> Result<Counters> {
        counters::read(&self.maps.counters)
    }

    pub fn params(&self) -> Result<Params> {
        params::read(&self.maps.params)
    }

    pub fn set_mode(&self, mode: Mode) -> Result<()> {
        let params = Params(sys::vcc_params { mode: mode.number(), ..self.params()?.0 });
        params::write(&self.maps.params, &params)
    }
}

/// The revision of the first hook, if vcc is at neither.
fn require_unattached(device: &Device) -> Result<u64> {
    let mut revisions = [0; 2];
    for (hook, revision) in Hook::BOTH.into_iter().zip(&mut revisions) {
        let attached = tcx::attached(device.ifindex, hook).map_err(|e| refusal(device, e))?;
        let ours = |id: &u32| tcx::program_name(*id).as_deref() == Some(hook.program_name());
        if attached.program_ids.iter().any(ours) {
            let device_name = device.name.clone();
            return Err(match pins::find(device)? {
                Some(_) => Error::AlreadyAttached { device: device_name },
                None => Error::HeldByProcess { device: device_name },
            });
        }
        *revision = attached.revision;
    }
    Ok(revisions[0])
}

fn attach_one(datapath: &Datapath, device: &Device, hook: Hook, revision: u64) -> Result<Link> {
    let program = datapath.program(hook.into())?;
    tcx::attach(&program, device.ifindex, revision).map_err(|e| refusal(device, e))
}

fn refusal(device: &Device, error: io::Error) -> Error {
    refusal_of(&kernel::release(), device, error)
}

/// What an error number of the hook means.
fn refusal_of(release: &str, device: &Device, error: io::Error) -> Error {
    let doing = format!("attach to `{}`", device.name);
    let system = |why: &str| Error::System { doing: doing.clone(), why: why.into() };
    match error.raw_os_error() {
        Some(libc::EINVAL) if kernel::version(release) < Some(kernel::OLDEST) => {
            Error::NoTcx { release: release.into() }
        }
        Some(libc::ENODEV) => Error::NoSuchDevice { device: device.name.clone() },
        Some(libc::ESTALE) => {
            system("somebody else attached a program to it at the same moment; try again")
        }
        Some(libc::ERANGE) => {
            system("it has no room for another program (`bpftool net` lists them)")
        }
        _ => Error::system(doing, error),
    }
}

#[cfg(test)]
mod tests;
