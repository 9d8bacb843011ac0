//! Which process leads a device's traffic through a detour: one at a time. An abstract socket is of the device's
//! network namespace, like the device's index, and ends with its process. Programs at the device would not tell:
//! reading their names requires CAP_SYS_ADMIN.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use vcc_net::peer::credentials;

use crate::device::Device;
use crate::{Error, Result};

/// Held until it is dropped.
pub(crate) struct Claim {
    _socket: UnixListener,
}

impl Claim {
    /// # Errors
    /// Another process has it.
    pub(crate) fn take(device: &Device) -> Result<Self> {
        let socket = address(device).and_then(|address| UnixListener::bind_addr(&address));
        match socket {
            Ok(socket) => Ok(Self { _socket: socket }),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                Err(Error::HeldByProcess { device: device.name.clone() })
            }
            Err(error) => Err(Error::system(format!("claim `{}`", device.name), error)),
        }
    }

    /// Has a process of vcc claimed the device? Another user's does not count.
    pub(crate) fn is_taken(device: &Device) -> bool {
        let holder = address(device).and_then(|address| UnixStream::connect_addr(&address));
        holder.ok().and_then(|holder| credentials(&holder)).is_some_and(|holder| {
            // SAFETY: the call cannot fail.
            holder.uid == 0 || holder.uid == unsafe { libc::geteuid() }
        })
    }
}

fn address(device: &Device) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("vcc-detour-{}", device.ifindex))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_claimed_once_until_its_process_ends() {
        let device = Device { name: "veth0".into(), ifindex: u32::MAX, netns_inode: 0 };
        assert!(!Claim::is_taken(&device));
        let claim = Claim::take(&device).expect("nobody has it");
        assert!(Claim::is_taken(&device));
        assert!(matches!(Claim::take(&device), Err(Error::HeldByProcess { .. })));
        drop(claim);
        assert!(!Claim::is_taken(&device));
        Claim::take(&device).expect("it is free again");
    }
}
