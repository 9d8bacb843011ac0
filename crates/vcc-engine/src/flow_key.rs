//! The key of a connection at a port.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::sys;

/// A connection as seen from the port. The key is the same in both directions, as in the kernel's
/// table. The default is that of no connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowKey(sys::vcc_key);

const INSIDE: u16 = sys::KEY_INSIDE as u16;

impl FlowKey {
    /// `vlan` is the connection's 802.1Q VLAN ID; 0 means none.
    pub fn new(guest: SocketAddr, peer: SocketAddr, vlan: Option<u16>) -> Self {
        let [guest_addr, peer_addr] = [guest, peer].map(|end| address_bits(end.ip()));
        let vlan = vlan.unwrap_or(0);
        Self::from_parts((guest_addr, guest.port()), (peer_addr, peer.port()), vlan)
    }

    /// Addresses, mapped if of IPv4, and ports in host byte order; `vlan` is 0 if untagged.
    #[inline]
    pub fn from_parts(guest: (u128, u16), peer: (u128, u16), vlan: u16) -> Self {
        FlowKey(sys::vcc_key {
            guest_addr: guest.0.to_be_bytes(),
            peer_addr: peer.0.to_be_bytes(),
            guest_port: guest.1.to_be(),
            peer_port: peer.1.to_be(),
            vlan,
            port: 0,
        })
    }

    /// From the kernel's table.
    pub fn from_raw(key: sys::vcc_key) -> Self {
        FlowKey(key)
    }

    /// The guest's address and port. An IPv4-mapped address is returned as IPv4.
    pub fn guest(&self) -> SocketAddr {
        SocketAddr::new(address(self.0.guest_addr), u16::from_be(self.0.guest_port))
    }

    /// The peer's address and port, likewise.
    pub fn peer(&self) -> SocketAddr {
        SocketAddr::new(address(self.0.peer_addr), u16::from_be(self.0.peer_port))
    }

    /// The 802.1Q VLAN ID.
    pub fn vlan(&self) -> Option<u16> {
        let id = self.0.vlan & !INSIDE;
        (id != 0).then_some(id)
    }

    /// The connection is inside a tunnel; the VLAN is that of the frame.
    pub fn is_inside(&self) -> bool {
        self.0.vlan & INSIDE != 0
    }

    /// The connection of these addresses that is inside a tunnel, or that is not.
    pub fn with_inside(mut self, inside: bool) -> Self {
        self.0.vlan = self.0.vlan & !INSIDE | if inside { INSIDE } else { 0 };
        self
    }

    /// The key in the kernel's flow table.
    #[inline]
    pub fn as_raw(&self) -> &sys::vcc_key {
        &self.0
    }

    /// The sort key, the same on every machine.
    fn sort_key(&self) -> (u128, u128, u16, u16, u16) {
        let sys::vcc_key { guest_addr, peer_addr, guest_port, peer_port, vlan, .. } = self.0;
        let [guest, peer] = [guest_addr, peer_addr].map(u128::from_be_bytes);
        (guest, peer, u16::from_be(guest_port), u16::from_be(peer_port), vlan)
    }
}

impl Ord for FlowKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.sort_key().cmp(&other.sort_key())
    }
}

impl PartialOrd for FlowKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for FlowKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let sys::vcc_key { guest_addr, peer_addr, guest_port, peer_port, vlan, .. } = self.0;
        let mut bytes = [0; 38];
        bytes[..16].copy_from_slice(&guest_addr);
        bytes[16..32].copy_from_slice(&peer_addr);
        for (place, word) in bytes[32..].chunks_exact_mut(2).zip([guest_port, peer_port, vlan]) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        // One write: a hasher's own finish costs more than its bytes.
        state.write(&bytes);
    }
}

impl fmt::Display for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.guest(), self.peer())?;
        if self.is_inside() {
            f.write_str(" in a tunnel")?;
        }
        self.vlan().map_or(Ok(()), |vlan| write!(f, " in VLAN {vlan}"))
    }
}

/// An address as in `struct vcc_key`: IPv4 is mapped (`::ffff:a.b.c.d`, RFC 4291, 2.5.5.2).
fn address_bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

fn address(bytes: [u8; 16]) -> IpAddr {
    Ipv6Addr::from(bytes).to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(guest: &str, peer: &str, vlan: Option<u16>) -> FlowKey {
        FlowKey::new(guest.parse().expect("an end"), peer.parse().expect("an end"), vlan)
    }

    #[test]
    fn both_families_survive_a_round_trip() {
        for (guest, peer) in [("10.0.0.2:40000", "10.0.0.9:80"), ("[fd00::2]:1", "[fd00::9]:2")] {
            let key = key(guest, peer, Some(7));
            assert_eq!(key.guest().to_string(), guest);
            assert_eq!(key.peer().to_string(), peer);
            assert_eq!(key.to_string(), format!("{guest}-{peer} in VLAN 7"));
        }
        assert_eq!(key("10.0.0.2:1", "10.0.0.9:2", Some(0)).vlan(), None);
        let inside = key("10.0.0.2:1", "10.0.0.9:2", Some(7)).with_inside(true);
        assert_eq!((inside.vlan(), inside.is_inside()), (Some(7), true));
        assert_eq!(inside.to_string(), "10.0.0.2:1-10.0.0.9:2 in a tunnel in VLAN 7");
        assert_eq!(inside.with_inside(false), key("10.0.0.2:1", "10.0.0.9:2", Some(7)));
    }

    /// All parts of the key are compared, including all 128 bits of the addresses.
    #[test]
    fn the_order_has_every_part() {
        let ordered = [
            key("[fd00::1]:1", "[fd00::9]:2", None),
            key("[fd00::1]:1", "[fd00::9]:2", Some(1)),
            key("[fd00::1]:1", "[fd00::9]:300", None),
            key("[fd00::1]:256", "[fd00::9]:2", None),
            key("[fd00::1]:1", "[fd00:0:1::9]:2", None),
            key("[fd00:0:1::1]:1", "[fd00::9]:2", None),
        ];
        assert!(ordered.is_sorted_by(|a, b| a < b));
    }
}
