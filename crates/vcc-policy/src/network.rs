//! Networks of both families in the bits of IPv6: IPv4 is ::ffff:a.b.c.d.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;

/// All of IPv4. It is not part of any IPv6 network, however short its prefix.
pub const IPV4: Network = Network { addr: 0xffff_0000_0000, length: 96 };

/// In this order a network comes right before all networks within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Network {
    pub addr: u128,
    pub length: u8,
}

impl Network {
    pub fn new(net: &IpNet) -> Self {
        let length = match net {
            IpNet::V4(net) => IPV4.length + net.prefix_len(),
            IpNet::V6(net) => net.prefix_len(),
        };
        Self { addr: address_bits(net.network()), length }
    }

    pub fn contains(self, other: Network) -> bool {
        self.length <= other.length && masked(other.addr, self.length) == self.addr
    }
}

pub fn masked(addr: u128, length: u8) -> u128 {
    let host_bits = 128 - u32::from(length);
    u128::MAX.checked_shl(host_bits).unwrap_or(0) & addr
}

pub fn address_bits(addr: IpAddr) -> u128 {
    let mapped = |addr: Ipv4Addr| addr.to_ipv6_mapped();
    match addr {
        IpAddr::V4(addr) => mapped(addr).to_bits(),
        IpAddr::V6(addr) => addr.to_bits(),
    }
}

impl Network {
    /// Its first and last address.
    pub fn bounds(self) -> (u128, u128) {
        (self.addr, self.addr | u128::MAX.checked_shr(self.length.into()).unwrap_or(0))
    }
}
