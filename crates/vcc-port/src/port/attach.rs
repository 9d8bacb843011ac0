//! Attaching to a device.

use std::io;

use libbpf_rs::Link;

use super::Port;
use crate::device::Device;
use crate::tcx::{self, Hook};
use crate::{AttachOptions, Datapath, Error, Program, Result, SharedPolicy, kernel, pins, sweep};

impl Port {
    /// Attaches to a device of the calling thread's network namespace, in both directions or not at
    /// all. Programs that are attached already stay, and run first.
    pub fn attach(device: &str, options: &AttachOptions) -> Result<Self> {
        Self::attach_with(device, || Datapath::load(options))
    }

    /// Attaches so that each connection has the treatment of its rule. `index` is below
    /// [`crate::PORTS_MAX`], and no other port of this policy has it. Only the size of the table
    /// and `emit` of `options` are used.
    pub fn attach_under(
        policy: &SharedPolicy,
        index: u32,
        device: &str,
        options: &AttachOptions,
    ) -> Result<Self> {
        Self::attach_with(device, || Datapath::load_under(policy, index, options))
    }

    fn attach_with(device: &str, load: impl FnOnce() -> Result<Datapath>) -> Result<Self> {
        let device = Device::named(device)?;
        device.require_ethernet()?;
        let revision = require_unattached(&device)?;
        let datapath = load()?;
        let sweep = sweep::keep(&datapath.program(Program::Sweep)?)?;
        // With the revision, the kernel refuses the later of two racing attachments.
        let links = [
            attach_one(&datapath, &device, Hook::FromGuest, revision)?,
            attach_one(&datapath, &device, Hook::ToGuest, 0)?,
        ];
        Ok(Self { device, links, maps: Some(datapath.maps), sweep: Some(sweep), pin: None })
    }
}

/// Returns the revision of the first hook, if vcc is attached to neither.
fn require_unattached(device: &Device) -> Result<u64> {
    if pins::is_attached(device)? {
        return Err(Error::AlreadyAttached { device: device.name.clone() });
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

fn attach_one(datapath: &Datapath, device: &Device, hook: Hook, revision: u64) -> Result<Link> {
    let program = datapath.program(hook.into())?;
    tcx::attach(&program, device.ifindex, revision).map_err(|e| refusal(device, e))
}

fn refusal(device: &Device, error: io::Error) -> Error {
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
