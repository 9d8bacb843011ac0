//! A detour of a device's TCP through a port in user space (`datapath/detour.bpf.c`).

use std::hash::{BuildHasher, RandomState};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use libbpf_rs::{Link, Object};
use vcc_policy::Order;

use crate::claim::Claim;
use crate::device::{self, Device};
use crate::links::{self, LinkNews};
use crate::port::{refusal, require_unattached};
use crate::tcx::{self, Hook};
use crate::{Error, Result, host, object};

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/detour.bpf.o"));
const WHAT: &str = "the detour";
const CONSTANTS_SECTION: &str = ".rodata.detour";

/// The kernel ends it with this value, also if the process is killed. In this order: nothing leaves the device for
/// the taps any more when its way back ends.
pub struct Detour {
    at_device: Option<[Link; 2]>,
    _at_taps: [Link; 4],
    programs: Object,
    device: Device,
    /// Of the device's first hook.
    revision: u64,
    _claim: Claim,
    gone: UnixStream,
}

impl Detour {
    /// Patterns for the names of the taps, in which the kernel puts a number.
    pub const GUEST_TAP: &str = "vcc-g%d";
    pub const FABRIC_TAP: &str = "vcc-f%d";

    /// Is a device of this name a tap of a detour, and no guest's?
    pub fn is_tap(device: &str) -> bool {
        [Self::GUEST_TAP, Self::FABRIC_TAP].into_iter().any(|pattern| {
            let number = device.strip_prefix(pattern.trim_end_matches("%d"));
            number.is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit()))
        })
    }

    /// Prepares two taps for the TCP of a device's guest. The guest's frames are read from `guest_tap`, and what is
    /// written there is sent to the guest; `fabric_tap` is the same for the other side. All three are in the calling
    /// thread's network namespace. [`Self::open`] must follow once the taps are up: before, the host might send
    /// frames of its own there.
    ///
    /// # Errors
    /// There is no such device, or vcc is attached to it already.
    pub fn prepare(device: &str, guest_tap: &str, fabric_tap: &str) -> Result<Self> {
        host::require_capabilities()?;
        let (device, revision) = find(device)?;
        let claim = Claim::take(&device)?;
        let (guest_tap, fabric_tap) = (Device::named(guest_tap)?, Device::named(fabric_tap)?);
        let gone = watch(&device)?;
        let mut open = object::open(OBJECT, WHAT)?;
        let constants = [device.ifindex, guest_tap.ifindex, fabric_tap.ifindex, unlikely_mark()];
        let constants = constants.map(u32::to_ne_bytes);
        object::set_constants(&mut open, CONSTANTS_SECTION, constants.as_flattened())?;
        let programs = object::load(open, WHAT)?;
        let at_taps = [
            link(&programs, "detour_only", &guest_tap, 0)?,
            link(&programs, "detour_only", &fabric_tap, 0)?,
            link(&programs, "return_out", &fabric_tap, 0)?,
            link(&programs, "return_in", &guest_tap, 0)?,
        ];
        let at_device = None;
        Ok(Self { at_device, _at_taps: at_taps, programs, device, revision, _claim: claim, gone })
    }

    /// From now on, the guest's TCP takes the detour. With the revision, the kernel refuses the later of two racing
    /// attachments.
    pub fn open(&mut self) -> Result<()> {
        let Self { programs, device, revision, .. } = self;
        let [out, into] = Hook::BOTH.map(Hook::detour_program_name);
        let links = [link(programs, out, device, *revision)?, link(programs, into, device, 0)?];
        self.at_device = Some(links);
        Ok(())
    }

    /// From now on, it passes directly. What the taps have by then still finds its way back.
    pub fn close(&mut self) {
        self.at_device = None;
    }

    /// Readable once the device has been deleted, or has left this namespace.
    pub fn gone(&self) -> &impl AsRawFd {
        &self.gone
    }
}

/// A device that can have a detour, and the revision of its first hook.
fn find(name: &str) -> Result<(Device, u64)> {
    let device = Device::named(name)?;
    device.require_ethernet()?;
    if let Some(current) = device::name_of(device.ifindex).filter(|current| current != name) {
        let why = format!("it is another name of `{current}`: use that");
        return Err(Error::System { doing: format!("attach to `{name}`"), why });
    }
    let revision = require_unattached(&device)?;
    Ok((device, revision))
}

fn link(programs: &Object, name: &str, at: &Device, revision: u64) -> Result<Link> {
    let program = object::program(programs, name)?;
    tcx::attach(&program, at.ifindex, Order::First, revision).map_err(|e| refusal(at, e))
}

/// A frame to which the host has given the same mark would pass by the port. The host's own marks are small numbers or
/// few bits.
fn unlikely_mark() -> u32 {
    RandomState::new().hash_one(0) as u32 | 1
}

/// A socket whose other end is closed once the device has gone, or has another name: the port has its name.
fn watch(device: &Device) -> Result<UnixStream> {
    let (here, there) = UnixStream::pair().map_err(|e| Error::system("watch a device", e))?;
    let Device { name, ifindex, .. } = device.clone();
    // The thread has `there` until it ends.
    links::watch(move |news| {
        let _open = &there;
        match news {
            LinkNews::Gone { index } => index != ifindex,
            LinkNews::Overrun => device::name_of(ifindex).is_some_and(|now| now == name),
            LinkNews::Is(link) => link.index != ifindex || link.name == name,
            LinkNews::Lost(_) => false,
        }
    })?;
    Ok(here)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taps_of_detours_have_names_with_a_number() {
        for name in ["vcc-g0", "vcc-f12"] {
            assert!(Detour::is_tap(name), "{name}");
        }
        for name in ["vcc-g", "vcc-guest", "vcc-h0", "avcc-g0", "vcc-g%d"] {
            assert!(!Detour::is_tap(name), "{name}");
        }
    }
}
