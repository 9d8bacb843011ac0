//! Addresses of the emulated hosts.

use super::family::Family;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use vcc_fabric::HostId;

pub fn address(family: Family, host: HostId) -> IpAddr {
    match family {
        Family::Ipv4 => ipv4_address(host).into(),
        Family::Ipv6 => Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, host as u16 + 1).into(),
    }
}

/// Prefix length of the network of all hosts.
pub fn prefix_bits(family: Family) -> u8 {
    match family {
        Family::Ipv4 => 16,
        Family::Ipv6 => 64,
    }
}

pub fn ipv4_address(host: HostId) -> Ipv4Addr {
    let [high, low] = (host as u16 + 1).to_be_bytes();
    Ipv4Addr::new(10, 77, high, low)
}
