//! A detour of a device's TCP through a port in user space (`datapath/detour.bpf.c`).

use std::hash::{BuildHasher, RandomState};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use libbpf_rs::{Link, Object};
use vcc_policy::Order;

use crate::device::{self, Device};
use crate::links::{self, LinkNews};
use crate::port::{refusal, require_unattached};
use crate::{Error, Result, host, object, tcx};

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/detour.bpf.o"));
const WHAT: &str = "the detour";
const CONSTANTS_SECTION: &str = ".rodata.detour";

/// The programs at the device's hooks, from and to the guest.
pub(crate) const PROGRAMS: [&str; 2] = ["detour_out", "detour_in"];

/// The kernel ends it with this value, also if the process is killed.
pub struct Detour {
    _links: [Link; 6],
    _programs: Object,
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

    /// Leads the TCP of the guest of `device` through two taps. The guest's frames are read from `guest_tap`, and
    /// what is written there is sent to the guest; `fabric_tap` is the same for the other side. All three are in the
    /// calling thread's network namespace.
    ///
    /// # Errors
    /// There is no such device, or vcc is attached to it already.
    pub fn attach(device: &str, guest_tap: &str, fabric_tap: &str) -> Result<Self> {
        host::require_capabilities()?;
        let (device, revision) = find(device)?;
        let (guest_tap, fabric_tap) = (Device::named(guest_tap)?, Device::named(fabric_tap)?);
        let gone = watch(device.ifindex)?;
        let mut open = object::open(OBJECT, WHAT)?;
        let constants = [device.ifindex, guest_tap.ifindex, fabric_tap.ifindex, unlikely_mark()];
        let constants = constants.map(u32::to_ne_bytes);
        object::set_constants(&mut open, CONSTANTS_SECTION, constants.as_flattened())?;
        let programs = object::load(open, WHAT)?;
        let link = |program: &str, at: &Device, revision: u64| {
            let program = object::program(&programs, program)?;
            tcx::attach(&program, at.ifindex, Order::First, revision).map_err(|e| refusal(at, e))
        };
        let [out, into] = PROGRAMS;
        // The ways back are there before the first frame leaves. With the revision, the kernel refuses the
        // later of two racing attachments.
        let links = [
            link("detour_only", &guest_tap, 0)?,
            link("detour_only", &fabric_tap, 0)?,
            link("return_out", &fabric_tap, 0)?,
            link("return_in", &guest_tap, 0)?,
            link(out, &device, revision)?,
            link(into, &device, 0)?,
        ];
        Ok(Self { _links: links, _programs: programs, gone })
    }

    /// Readable once the device has been deleted, or has left this namespace.
    pub fn gone(&self) -> &impl AsRawFd {
        &self.gone
    }
}

/// A device that can have a detour, and the revision of its first hook.
fn find(device: &str) -> Result<(Device, u64)> {
    let device = Device::named(device)?;
    device.require_ethernet()?;
    let revision = require_unattached(&device)?;
    Ok((device, revision))
}

/// A frame to which the host has given the same mark would pass by the port. The host's own marks are small numbers or
/// few bits.
fn unlikely_mark() -> u32 {
    RandomState::new().hash_one(0) as u32 | 1
}

/// A socket whose other end is closed once the device has gone.
fn watch(ifindex: u32) -> Result<UnixStream> {
    let (here, there) = UnixStream::pair().map_err(|e| Error::system("watch a device", e))?;
    // The thread has `there` until it ends.
    links::watch(move |news| {
        let _open = &there;
        match news {
            LinkNews::Gone { index } => index != ifindex,
            LinkNews::Overrun => device::exists(ifindex),
            LinkNews::Is(_) => true,
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
