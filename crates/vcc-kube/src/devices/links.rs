//! The host's ends of pairs whose other ends are in other network namespaces.

use std::io;

use vcc_net::netlink::{self, Attributes, bytes};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub index: u32,
    pub name: String,
    /// The other end's network namespace, by the number that ours has for it.
    pub peer_namespace: u32,
}

/// struct ifinfomsg.
const LINK_HEADER_BYTES: usize = 16;
/// IFLA_LINK_NETNSID (linux/if_link.h).
const LINK_NAMESPACE: u16 = 37;

pub fn ends_of_veths() -> io::Result<Vec<Link>> {
    let links = netlink::dump(libc::RTM_GETLINK, &[0; LINK_HEADER_BYTES])?;
    Ok(links.iter().filter_map(|payload| read(payload)).collect())
}

fn read(payload: &[u8]) -> Option<Link> {
    let attributes = Attributes::behind(LINK_HEADER_BYTES, payload);
    let name = attributes.get(libc::IFLA_IFNAME)?.split(|byte| *byte == 0).next()?;
    Some(Link {
        index: bytes(payload, 4).map(u32::from_ne_bytes)?,
        // A port cannot have another name.
        name: std::str::from_utf8(name).ok()?.to_owned(),
        peer_namespace: attributes.u32(LINK_NAMESPACE)?,
    })
}
