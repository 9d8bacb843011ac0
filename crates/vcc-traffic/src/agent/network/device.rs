//! Network devices, by the ioctls of netdevice(7) and arp(7).

use libc::{__c_anonymous_ifr_ifru as Argument, c_char, ifreq, sockaddr};
use socket2::{Domain, Socket, Type};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use vcc_traffic::plan::Neighbour;
use vcc_traffic::system::check;
use vcc_traffic::{Doing, Error, Result};

/// A socket to ask by; any will do.
pub struct Devices(Socket);

impl Devices {
    pub fn open() -> Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None);
        socket.map(Self).doing(|| "make a socket to set devices up with".into())
    }

    pub fn bring_up(&self, device: &str) -> Result<()> {
        let mut request = request(device, Argument { ifru_flags: 0 })?;
        self.ask(libc::SIOCGIFFLAGS, &mut request).doing(|| format!("find the device {device}"))?;
        // SAFETY: this is the member that the kernel has just written.
        let flags = unsafe { request.ifr_ifru.ifru_flags };
        request.ifr_ifru = Argument { ifru_flags: flags | libc::IFF_UP as i16 };
        self.ask(libc::SIOCSIFFLAGS, &mut request).doing(|| format!("bring {device} up"))
    }

    pub fn set_address(&self, device: &str, address: Ipv4Addr, prefix_bits: u8) -> Result<()> {
        let mask = netmask(prefix_bits);
        let doing = || format!("give {device} the address {address}/{prefix_bits}");
        for (what, address) in [(libc::SIOCSIFADDR, address), (libc::SIOCSIFNETMASK, mask)] {
            let mut request = request(device, Argument { ifru_addr: ipv4(address) })?;
            self.ask(what, &mut request).doing(doing)?;
        }
        Ok(())
    }

    pub fn add_neighbour(&self, device: &str, neighbour: &Neighbour) -> Result<()> {
        let mut entry = libc::arpreq {
            arp_pa: ipv4(neighbour.address),
            arp_ha: ethernet(neighbour.mac),
            arp_flags: libc::ATF_PERM | libc::ATF_COM,
            arp_netmask: NO_ADDRESS,
            arp_dev: name(device)?,
        };
        // SAFETY: `entry` is what this operation takes.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SIOCSARP, &raw mut entry) };
        check(result)
            .map(drop)
            .doing(|| format!("make {} a neighbour on {device}", neighbour.address))
    }

    /// Asks the driver of a device, as ethtool(8) does.
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

const NO_ADDRESS: sockaddr = sockaddr { sa_family: libc::AF_UNSPEC as u16, sa_data: [0; 14] };

fn request(device: &str, argument: Argument) -> Result<ifreq> {
    Ok(ifreq { ifr_name: name(device)?, ifr_ifru: argument })
}

fn name(device: &str) -> Result<[c_char; libc::IFNAMSIZ]> {
    let mut name = [0; libc::IFNAMSIZ];
    if device.len() >= name.len() {
        return Err(Error::Plan(format!("has a device '{device}', which is too long a name")));
    }
    for (place, byte) in name.iter_mut().zip(device.bytes()) {
        *place = byte as c_char;
    }
    Ok(name)
}

/// `struct sockaddr_in`: a port, which nobody asks for here, then the address.
fn ipv4(address: Ipv4Addr) -> sockaddr {
    let [a, b, c, d] = address.octets();
    with_data(libc::AF_INET as u16, &[0, 0, a, b, c, d])
}

fn ethernet(mac: [u8; 6]) -> sockaddr {
    with_data(libc::ARPHRD_ETHER, &mac)
}

fn with_data(family: u16, bytes: &[u8]) -> sockaddr {
    let mut address = sockaddr { sa_family: family, ..NO_ADDRESS };
    for (place, byte) in address.sa_data.iter_mut().zip(bytes) {
        *place = *byte as c_char;
    }
    address
}

fn netmask(prefix_bits: u8) -> Ipv4Addr {
    let host_bits = 32_u32.saturating_sub(prefix_bits.into());
    Ipv4Addr::from_bits(u32::MAX.checked_shl(host_bits).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_masks() {
        let masks = [(0, [0; 4]), (16, [255, 255, 0, 0]), (23, [255, 255, 254, 0]), (32, [255; 4])];
        for (prefix_bits, mask) in masks {
            assert_eq!(netmask(prefix_bits).octets(), mask);
        }
    }

    #[test]
    fn names_end_with_a_zero() {
        assert_eq!(name("eth0").unwrap()[..5], [101, 116, 104, 48, 0]);
        assert!(name("as-long-as-16-by").is_err());
    }
}
