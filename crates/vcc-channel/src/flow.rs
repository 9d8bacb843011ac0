//! A connection, as both ends of the channel name it.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::bytes::part;

/// A connection between the guest and a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flow {
    /// IPv4 addresses are mapped (RFC 4291, 2.5.5.2).
    pub guest: [u8; 16],
    pub peer: [u8; 16],
    pub guest_port: u16,
    pub peer_port: u16,
}

impl Flow {
    pub fn new(guest: SocketAddr, peer: SocketAddr) -> Self {
        let [guest_address, peer_address] = [guest, peer].map(|end| mapped(end.ip()).octets());
        Flow {
            guest: guest_address,
            peer: peer_address,
            guest_port: guest.port(),
            peer_port: peer.port(),
        }
    }
}

impl Flow {
    /// The bytes that it takes in a message.
    pub(crate) const BYTES: usize = 36;

    pub(crate) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..16].copy_from_slice(&self.guest);
        bytes[16..32].copy_from_slice(&self.peer);
        bytes[32..34].copy_from_slice(&self.guest_port.to_le_bytes());
        bytes[34..].copy_from_slice(&self.peer_port.to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        Flow {
            guest: part(bytes, 0),
            peer: part(bytes, 16),
            guest_port: u16::from_le_bytes(part(bytes, 32)),
            peer_port: u16::from_le_bytes(part(bytes, 34)),
        }
    }
}

fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}
