//! A packet socket.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::device::Device;
use crate::{Error, Result};

/// A socket that only sends.
pub struct Socket {
    socket: OwnedFd,
}

/// The path of its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Around the egress programs of the device, ours among them.
    Direct,
    /// As all else.
    PastPrograms,
}

impl Socket {
    /// At a device of the calling thread's network namespace.
    pub fn at(device: &str, way: Way) -> Result<Self> {
        Self::open(&Device::named(device)?, way)
    }

    /// In the calling thread's network namespace, where the device must be.
    pub(crate) fn open(device: &Device, way: Way) -> Result<Self> {
        Self::open_at(device, way).map_err(|error| {
            let doing = format!("open a packet socket at `{}`", device.name);
            if error.kind() == io::ErrorKind::PermissionDenied {
                Error::NotPermitted { doing, why: "it needs CAP_NET_RAW".into() }
            } else {
                Error::system(doing, error)
            }
        })
    }

    fn open_at(device: &Device, way: Way) -> io::Result<Self> {
        // Protocol 0: it receives nothing.
        const NOTHING: libc::c_int = 0;
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: the call takes no pointers.
        let socket = checked(unsafe { libc::socket(libc::AF_PACKET, kind, NOTHING) })?;
        // SAFETY: a new descriptor, which nobody else has.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        let address = address_of(device.ifindex);
        let length = size_of_val(&address) as libc::socklen_t;
        let to = std::ptr::from_ref(&address).cast();
        // SAFETY: pointer and length are those of the address, which outlives the call.
        checked(unsafe { libc::bind(socket.as_raw_fd(), to, length) })?;
        // Egress programs run before the queueing discipline.
        let bypasses = libc::c_int::from(way == Way::Direct);
        // SAFETY: pointer and length are those of the integer, which outlives the call.
        checked(unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_QDISC_BYPASS,
                std::ptr::from_ref(&bypasses).cast(),
                size_of_val(&bypasses) as libc::socklen_t,
            )
        })?;
        Ok(Self { socket })
    }

    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        // SAFETY: pointer and length are those of the frame, which outlives the call.
        let sent =
            unsafe { libc::send(self.socket.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// By another device of the namespace in which it was opened.
    pub(crate) fn send_by(&self, ifindex: u32, frame: &[u8]) -> io::Result<()> {
        let address = address_of(ifindex);
        // SAFETY: pointers and lengths are those of the frame and the address, which outlive the call.
        let sent = unsafe {
            libc::sendto(
                self.socket.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                0,
                std::ptr::from_ref(&address).cast(),
                size_of_val(&address) as libc::socklen_t,
            )
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

fn address_of(ifindex: u32) -> libc::sockaddr_ll {
    // SAFETY: all-zero bytes are a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as libc::sa_family_t;
    address.sll_ifindex = ifindex as libc::c_int;
    address
}

fn checked(status: libc::c_int) -> io::Result<libc::c_int> {
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(status) }
}
