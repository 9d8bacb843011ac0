//! Network devices, by the ioctls of netdevice(7).

use libc::{__c_anonymous_ifr_ifru as Argument, c_char, ifreq};
use socket2::{Domain, Socket, Type};
use std::io;
use std::os::fd::AsRawFd;
use vcc_traffic::system::check;
use vcc_traffic::{Doing, Error, Result};

/// A socket for ioctls, of any kind.
pub struct Devices(Socket);

impl Devices {
    pub fn open() -> Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None);
        socket.map(Self).doing(|| "create a socket to configure devices".into())
    }

    pub fn bring_up(&self, device: &str) -> Result<()> {
        let mut request = request(device, Argument { ifru_flags: 0 })?;
        self.ask(libc::SIOCGIFFLAGS, &mut request).doing(|| format!("find the device {device}"))?;
        // SAFETY: this is the member that the kernel has just written.
        let flags = unsafe { request.ifr_ifru.ifru_flags };
        request.ifr_ifru = Argument { ifru_flags: flags | libc::IFF_UP as i16 };
        self.ask(libc::SIOCSIFFLAGS, &mut request).doing(|| format!("bring {device} up"))
    }

    /// An ethtool(8) request to the driver of a device.
    pub fn ask_driver(&self, device: &str, value: &mut EthtoolValue) -> Result<()> {
        let data = Argument { ifru_data: (&raw mut *value).cast() };
        let mut request = request(device, data)?;
        self.ask(libc::SIOCETHTOOL, &mut request)
            .doing(|| format!("ask the driver of {device} (ethtool's {:#x})", value.command))
    }

    fn ask(&self, what: libc::Ioctl, request: &mut ifreq) -> io::Result<()> {
        // SAFETY: `request` is what these operations take, with the argument that belongs to them.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), what, &raw mut *request) }).map(drop)
    }
}

/// `struct ethtool_value` of linux/ethtool.h.
#[repr(C)]
pub struct EthtoolValue {
    pub command: u32,
    pub data: u32,
}

fn request(device: &str, argument: Argument) -> Result<ifreq> {
    Ok(ifreq { ifr_name: name(device)?, ifr_ifru: argument })
}

fn name(device: &str) -> Result<[c_char; libc::IFNAMSIZ]> {
    let mut name = [0; libc::IFNAMSIZ];
    if device.len() >= name.len() {
        return Err(Error::Plan(format!("has a device '{device}', whose name is too long")));
    }
    for (place, byte) in name.iter_mut().zip(device.bytes()) {
        *place = byte as c_char;
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_with_a_zero() {
        assert_eq!(name("eth0").unwrap()[..5], [101, 116, 104, 48, 0]);
        assert!(name("as-long-as-16-by").is_err());
    }
}
