//! Devices as rtnetlink(7) describes them.

use std::io;
use std::net::IpAddr;

use vcc_engine::sys;

use vcc_net::netlink::{self, Attributes, bytes};

/// struct ifinfomsg.
const HEADER_BYTES: usize = 16;

#[derive(Clone, Debug, Default)]
pub(crate) struct Link {
    pub index: u32,
    pub name: String,
    /// The kind of the device, such as `veth`; None for a device of hardware.
    pub kind: Option<String>,
    /// The device that this one is a port or member of.
    pub master: Option<u32>,
    /// The device on top of which this one is, or the peer of a veth, if that is in this namespace.
    pub lower: Option<u32>,
    /// The remote end of a tunnel whose packets leave by this namespace.
    pub remote: Option<IpAddr>,
    /// The UDP port that a tunnel's packets go to, if they are UDP.
    pub udp_port: Option<u16>,
    pub is_loopback: bool,
    /// The card's name for what is behind the device, such as `p0` or `pf0vf1`.
    pub behind: Option<String>,
    /// The hardware or virtual hardware, such as `0000:03:00.0` or `virtio0`.
    pub hardware: Option<String>,
    pub vlan_filtering: bool,
    /// The XDP programs: the mode, and the ID of the program.
    pub xdp: Vec<(&'static str, u32)>,
    pub packets: Packets,
}

/// Counters of a device since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Packets {
    pub received: u64,
    pub sent: u64,
}

impl Link {
    pub(crate) fn read(index: u32) -> io::Result<Self> {
        let payload = netlink::get(libc::RTM_GETLINK, &request(index))?;
        parse(&payload).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    pub(crate) fn all() -> io::Result<Vec<Self>> {
        let payloads = netlink::dump(libc::RTM_GETLINK, &request(0))?;
        Ok(payloads.iter().filter_map(|payload| parse(payload)).collect())
    }

    /// A device that somebody has on top of another one, and sends out of it.
    pub(crate) fn is_on_top(&self) -> bool {
        self.is_a(&["macvlan", "macvtap", "ipvlan", "ipvtap"])
    }

    /// A card's own device, and not that of a virtual function, which is a guest's.
    pub(crate) fn is_card(&self) -> bool {
        let is_function = |name: &String| name.contains("vf") || name.contains("sf");
        self.hardware.is_some() && !self.behind.as_ref().is_some_and(is_function)
    }

    pub(crate) fn is_a(&self, kinds: &[&str]) -> bool {
        self.kind.as_deref().is_some_and(|kind| kinds.contains(&kind))
    }
}

fn request(index: u32) -> [u8; HEADER_BYTES] {
    let mut request = [0; HEADER_BYTES];
    request[4..8].copy_from_slice(&index.to_ne_bytes());
    request
}

fn parse(payload: &[u8]) -> Option<Link> {
    let index = u32::from_ne_bytes(bytes(payload, 4)?);
    let attributes = Attributes::behind(HEADER_BYTES, payload);
    let info = attributes.nested(libc::IFLA_LINKINFO);
    let kind = info.text(libc::IFLA_INFO_KIND);
    let data = info.nested(libc::IFLA_INFO_DATA);
    let is = |wanted: &str| kind.as_deref() == Some(wanted);
    // With a namespace of its own, the index is one of that namespace.
    let is_here = attributes.get(libc::IFLA_LINK_NETNSID).is_none();
    let tunnel = Tunnel::from_attributes(kind.as_deref().unwrap_or_default(), data);
    Some(Link {
        index,
        name: attributes.text(libc::IFLA_IFNAME)?,
        master: attributes.u32(libc::IFLA_MASTER),
        lower: attributes
            .u32(libc::IFLA_LINK)
            .or(tunnel.link)
            .filter(|lower| is_here && *lower != 0 && *lower != index),
        remote: tunnel.remote.filter(|_| is_here),
        udp_port: tunnel.udp_port,
        is_loopback: bytes(payload, 8).map(u32::from_ne_bytes).unwrap_or_default()
            & libc::IFF_LOOPBACK as u32
            != 0,
        behind: attributes.text(libc::IFLA_PHYS_PORT_NAME),
        hardware: attributes.text(libc::IFLA_PARENT_DEV_NAME),
        vlan_filtering: is("bridge")
            && data.get(IFLA_BR_VLAN_FILTERING).is_some_and(|on| on.first() == Some(&1)),
        xdp: xdp(attributes.nested(libc::IFLA_XDP)),
        packets: packets(attributes.get(libc::IFLA_STATS64).unwrap_or_default()),
        kind,
    })
}

/// linux/if_link.h.
const IFLA_BR_VLAN_FILTERING: u16 = 7;
const IFLA_XDP_ATTACHED: u16 = 2;
const IFLA_XDP_PROG_ID: u16 = 4;
/// Where programs are attached in several modes.
const IFLA_XDP_IDS: [(u16, &str); 3] = [(5, "native"), (6, "generic"), (7, "offloaded")];
/// By `enum` XDP_ATTACHED_*: none, driver, skb, hardware.
const XDP_MODES: [&str; 4] = ["", "native", "generic", "offloaded"];

fn xdp(attributes: Attributes<'_>) -> Vec<(&'static str, u32)> {
    let by_mode: Vec<_> = IFLA_XDP_IDS
        .into_iter()
        .filter_map(|(kind, mode)| Some((mode, attributes.u32(kind)?)))
        .collect();
    if !by_mode.is_empty() {
        return by_mode;
    }
    // A kernel that has one program may name it without its mode.
    let mode = attributes.get(IFLA_XDP_ATTACHED).and_then(|value| value.first().copied());
    let mode = mode.and_then(|mode| XDP_MODES.get(usize::from(mode)).copied());
    mode.zip(attributes.u32(IFLA_XDP_PROG_ID)).into_iter().collect()
}

/// Of struct rtnl_link_stats64, which begins with the packets received and sent.
fn packets(stats: &[u8]) -> Packets {
    let at = |at| bytes(stats, at).map_or(0, u64::from_ne_bytes);
    Packets { received: at(0), sent: at(8) }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Tunnel {
    link: Option<u32>,
    remote: Option<IpAddr>,
    udp_port: Option<u16>,
}

impl Tunnel {
    /// The numbers of the attributes are those of linux/if_link.h and linux/if_tunnel.h.
    fn from_attributes(kind: &str, data: Attributes<'_>) -> Self {
        let (link, remotes): (u16, &[u16]) = match kind {
            "vxlan" => (3, &[2, 16]),
            "geneve" => (0, &[2, 7]),
            "gre" | "gretap" | "ip6gre" | "ip6gretap" | "erspan" | "ip6erspan" => (1, &[7]),
            "ipip" | "sit" | "ip6tnl" => (1, &[3]),
            _ => return Self::default(),
        };
        // With the kernel's own defaults.
        let udp_port = match kind {
            "vxlan" => Some((15, sys::VXLAN_LINUX_PORT as u16)),
            "geneve" => Some((5, sys::GENEVE_PORT as u16)),
            _ => None,
        };
        let udp_port = udp_port.map(|(attribute, default)| {
            let given = data.get(attribute).and_then(|value| bytes(value, 0));
            given.map_or(default, u16::from_be_bytes)
        });
        let remote = remotes.iter().find_map(|kind| address(data.get(*kind)?));
        Self { link: data.u32(link), remote, udp_port }
    }
}

/// None if it is the unspecified address.
fn address(value: &[u8]) -> Option<IpAddr> {
    let address: IpAddr = match value.len() {
        4 => bytes::<4>(value, 0)?.into(),
        _ => bytes::<16>(value, 0)?.into(),
    };
    (!address.is_unspecified()).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vcc_net::netlink::attribute;

    fn tunnel(kind: &str, attributes: &[Vec<u8>]) -> Tunnel {
        Tunnel::from_attributes(kind, Attributes::behind(0, &attributes.concat()))
    }

    #[test]
    fn udp_ports_of_tunnels() {
        let remote = IpAddr::from([192, 0, 2, 9]);
        let to = attribute(2, &[192, 0, 2, 9]);
        let geneve = tunnel("geneve", &[to.clone(), attribute(5, &[0x17, 0xc2])]);
        let given = Tunnel { link: None, remote: Some(remote), udp_port: Some(6082) };
        assert_eq!(geneve, given);
        let vxlan =
            tunnel("vxlan", &[attribute(3, &7u32.to_ne_bytes()), to, attribute(15, &[0x21, 0x19])]);
        let given = Tunnel { link: Some(7), remote: Some(remote), udp_port: Some(8473) };
        assert_eq!(vxlan, given);
        assert_eq!(tunnel("vxlan", &[]).udp_port, Some(8472));
        assert_eq!(tunnel("geneve", &[attribute(5, &[0x17])]).udp_port, Some(6081));
        assert_eq!(tunnel("gretap", &[attribute(5, &[0x17, 0xc2])]).udp_port, None);
    }

    #[test]
    fn representors_are_no_cards() {
        let link = |behind: &str| {
            let text = |kind, text: &str| attribute(kind, format!("{text}\0").as_bytes());
            let attributes = [
                text(libc::IFLA_IFNAME, "eth0"),
                text(libc::IFLA_PARENT_DEV_NAME, "0000:03:00.0"),
                text(libc::IFLA_PHYS_PORT_NAME, behind),
            ];
            parse(&[&request(3)[..], &attributes.concat()].concat()).expect("a link")
        };
        assert!(link("p0").is_card());
        assert!(!link("pf0vf1").is_card());
        assert!(!link("c1pf0sf88").is_card());
    }

    #[test]
    fn bridges_that_filter_vlans() {
        let filters = |kind: &str, on: u8| {
            let data = attribute(libc::IFLA_INFO_DATA, &attribute(IFLA_BR_VLAN_FILTERING, &[on]));
            let kind = attribute(libc::IFLA_INFO_KIND, format!("{kind}\0").as_bytes());
            let info = attribute(libc::IFLA_LINKINFO, &[kind, data].concat());
            let name = attribute(libc::IFLA_IFNAME, b"br0\0");
            let link = parse(&[&request(3)[..], &name, &info].concat()).expect("a link");
            assert_eq!((link.index, link.name.as_str()), (3, "br0"));
            link.vlan_filtering
        };
        assert!(filters("bridge", 1));
        assert!(!filters("bridge", 0));
        // Other kinds have other attributes by that number.
        assert!(!filters("geneve", 1));
    }
}
