//! Attaching to a device.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use libbpf_rs::{Link, Object};
use vcc_policy::Order;

use super::{Port, Seat};
use crate::claim::Claim;
use crate::device::Device;
use crate::host::Room;
use crate::pins::{self, Pin};
use crate::tcx::{self, Hook};
use crate::{
    AttachOptions, Error, Expedited, Governor, Host, PORTS_MAX, Result, SharedPolicy, host, kernel,
    lock, object, timers, usage,
};

impl Port {
    /// Attaches to a device of the calling thread's network namespace, in both directions or not at
    /// all. Programs that are attached already stay. The attachment ends with the value, and shares
    /// nothing with other ports.
    pub fn attach(device: &str, options: &AttachOptions) -> Result<Self> {
        Self::attach_alone(device, None, options)
    }

    /// Likewise, so that each connection has the treatment of its rule. `index` is below
    /// [`crate::PORTS_MAX`], and no other port of this policy has it. Only the size of the table
    /// and `emit` of `options` are used.
    pub fn attach_under(
        policy: &SharedPolicy,
        index: u32,
        device: &str,
        options: &AttachOptions,
    ) -> Result<Self> {
        Self::attach_alone(device, Some((policy, index)), options)
    }

    fn attach_alone(
        device: &str,
        policy: Option<(&SharedPolicy, u32)>,
        options: &AttachOptions,
    ) -> Result<Self> {
        let place = Place::find(device)?;
        let (policy, index) = policy.unzip();
        let (host, _) = Host::load(policy, Room::for_one(options.max_flows), false)?;
        let host = Arc::new(host);
        let (port, _) = place.attach(&host, index.unwrap_or(0), index.is_some(), options)?;
        Ok(port)
    }

    /// Attaches so that the attachment outlives this value and this process: to all of the devices,
    /// or to none.
    pub fn attach_pinned(devices: &[&str], options: &AttachOptions) -> Result<Vec<Self>> {
        host::require_capabilities()?;
        if let [device, ..] = devices
            && !timers::are_there()
            && !Governor::is_there()?
        {
            return Err(Error::NeedsDaemon { device: (*device).into() });
        }
        let mut ports: Vec<Self> = Vec::new();
        for device in devices {
            match Self::attach_one_pinned(device, options) {
                Ok(port) => ports.push(port),
                Err(error) => {
                    // The first error is reported; a later sweep removes what is left.
                    ports.into_iter().for_each(|port| drop(port.detach()));
                    let _ = Host::remove_unused();
                    return Err(error);
                }
            }
        }
        Ok(ports)
    }

    fn attach_one_pinned(device: &str, options: &AttachOptions) -> Result<Self> {
        let _lock = lock::pins()?;
        let place = Place::find(device)?;
        let host = Host::open_locked()?;
        let index = free_index(&host)?;
        place.attach_and_pin(&host, index, false, options)
    }

    /// Like [`Self::attach_pinned`], to one device, under the pinned policy. `admit` is called with
    /// the port's index before the first connection: see [`SharedPolicy::admit`]. Returns that
    /// index, too.
    pub fn attach_pinned_under(
        host: &Arc<Host>,
        device: &str,
        options: &AttachOptions,
        admit: impl FnOnce(u32) -> Result<()>,
    ) -> Result<(Self, u32)> {
        let _lock = lock::pins()?;
        let place = Place::find(device)?;
        let index = free_index(host)?;
        admit(index)?;
        Ok((place.attach_and_pin(host, index, true, options)?, index))
    }
}

/// The lowest index that no port has. The caller holds the lock.
fn free_index(host: &Host) -> Result<u32> {
    let taken: HashSet<u32> = pins::indices()?.into_iter().collect();
    for index in (0..PORTS_MAX).filter(|index| !taken.contains(index)) {
        if usage::read(&host.maps.usage, index)?.flows == 0 {
            return Ok(index);
        }
    }
    Err(Error::NoPortLeft)
}

/// A device that nothing of vcc is attached to.
pub(super) struct Place {
    device: Device,
    /// The revision of the first hook.
    revision: u64,
}

impl Place {
    pub(super) fn find(device: &str) -> Result<Self> {
        let device = Device::named(device)?;
        device.require_ethernet()?;
        let revision = require_unattached(&device)?;
        Ok(Self { device, revision })
    }

    /// Returns the attached programs, too.
    fn attach(
        self,
        host: &Arc<Host>,
        index: u32,
        by_policy: bool,
        options: &AttachOptions,
    ) -> Result<(Port, Object)> {
        let generation = host.enter(index, &options.port(by_policy))?;
        let seat = Arc::new(Seat { host: Arc::clone(host), index, generation });
        let attach = || {
            host.open_wheel(index)?;
            let programs = host.port_programs(index)?;
            Ok((self.link(&programs, options.order)?, programs))
        };
        match attach() {
            Ok((links, programs)) => Ok((self.port(links, seat), programs)),
            Err(error) => {
                // The first error is reported.
                let _ = host.leave(index);
                Err(error)
            }
        }
    }

    /// Attaches a port's programs in both directions, or not at all.
    pub(super) fn link(&self, programs: &Object, order: Order) -> Result<[Link; 2]> {
        let Self { device, revision } = self;
        // With the revision, the kernel refuses the later of two racing attachments.
        Ok([
            attach_one(programs, device, Hook::FromGuest, order, *revision)?,
            attach_one(programs, device, Hook::ToGuest, order, 0)?,
        ])
    }

    pub(super) fn port(self, links: [Link; 2], seat: Arc<Seat>) -> Port {
        let (seat, pin) = (Some(seat), None);
        Port { device: self.device, links, seat, pin, others: Vec::new(), shown_at: None }
    }

    fn attach_and_pin(
        self,
        host: &Arc<Host>,
        index: u32,
        by_policy: bool,
        options: &AttachOptions,
    ) -> Result<Port> {
        let _expedited = Expedited::begin();
        let (mut port, programs) = self.attach(host, index, by_policy, options)?;
        port.pin(index, &programs)?;
        Ok(port)
    }
}

impl Port {
    /// The caller holds the lock.
    pub(super) fn pin(&mut self, index: u32, programs: &Object) -> Result<()> {
        let pin = Pin::new(&self.device, index);
        pin.create(&mut self.links, object::port_programs(programs)?)?;
        self.pin = Some(pin);
        Ok(())
    }
}

/// Returns the revision of the first hook, if vcc is attached to neither.
pub(crate) fn require_unattached(device: &Device) -> Result<u64> {
    if pins::is_attached(device)? {
        return Err(Error::AlreadyAttached { device: device.name.clone() });
    }
    if Claim::is_taken(device) {
        return Err(Error::HeldByProcess { device: device.name.clone() });
    }
    let mut revisions = [0; 2];
    for (hook, revision) in Hook::BOTH.into_iter().zip(&mut revisions) {
        let attached = tcx::attached(device.ifindex, hook).map_err(|e| refusal(device, e))?;
        let ours = |id: &u32| tcx::program_name(*id).as_deref() == Some(hook.program_name());
        if attached.program_ids.iter().any(ours) {
            return Err(Error::HeldByProcess { device: device.name.clone() });
        }
        *revision = attached.revision;
    }
    Ok(revisions[0])
}

fn attach_one(
    programs: &Object,
    device: &Device,
    hook: Hook,
    order: Order,
    revision: u64,
) -> Result<Link> {
    let program = object::program(programs, hook.program_name())?;
    tcx::attach(&program, device.ifindex, order, revision).map_err(|e| refusal(device, e))
}

pub(crate) fn refusal(device: &Device, error: io::Error) -> Error {
    refusal_of(&kernel::release(), device, error)
}

/// The meaning of an error number of the hook.
pub(super) fn refusal_of(release: &str, device: &Device, error: io::Error) -> Error {
    let doing = format!("attach to `{}`", device.name);
    let system = |why: &str| Error::System { doing: doing.clone(), why: why.into() };
    match error.raw_os_error() {
        Some(libc::EINVAL) if kernel::version(release) < Some(kernel::OLDEST) => {
            Error::NoTcx { release: release.into() }
        }
        Some(libc::ENODEV) => Error::NoSuchDevice { device: device.name.clone() },
        Some(libc::ESTALE) => {
            system("another process attached a program at the same time; try again")
        }
        Some(libc::ERANGE) => {
            system("the hook has no room for another program (`bpftool net` lists them)")
        }
        _ => Error::system(doing, error),
    }
}
