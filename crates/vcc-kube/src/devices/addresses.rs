//! Addresses in other network namespaces, which the kernel reports with the number that ours has for them:
//! no process has to enter one, or needs privileges in it.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use vcc_net::netlink::{self, Attributes};

use super::links::Link;

/// struct ifaddrmsg.
const ADDRESS_HEADER_BYTES: usize = 8;
/// IFA_TARGET_NETNSID (linux/if_addr.h).
const TARGET_NAMESPACE: u16 = 10;

/// The devices that lead to addresses. A namespace that is gone, or that cannot be asked, has none, and
/// the device of an address that several have is unknown.
pub fn of_other_ends(links: &[&Link]) -> HashMap<IpAddr, String> {
    let mut devices: HashMap<u32, Vec<&Link>> = HashMap::new();
    for link in links {
        devices.entry(link.peer_namespace).or_default().push(link);
    }
    let mut found = Vec::new();
    for (namespace, links) in devices {
        // With several devices, the one that leads to an address is unknown.
        let [link] = links.as_slice() else { continue };
        let addresses = netlink::dump_some(libc::RTM_GETADDR, &question(namespace));
        for address in addresses.iter().flatten().filter_map(|payload| read(payload)) {
            found.push((address, link.name.as_str()));
        }
    }
    of_one_device(found)
}

fn of_one_device(found: Vec<(IpAddr, &str)>) -> HashMap<IpAddr, String> {
    let mut devices: HashMap<IpAddr, Option<&str>> = HashMap::new();
    for (address, device) in found {
        let known = devices.entry(address).or_insert(Some(device));
        *known = known.filter(|known| *known == device);
    }
    let known = |(address, device): (IpAddr, Option<&str>)| Some((address, device?.to_owned()));
    devices.into_iter().filter_map(known).collect()
}

fn question(namespace: u32) -> Vec<u8> {
    let mut body = vec![0; ADDRESS_HEADER_BYTES];
    body.extend(8_u16.to_ne_bytes());
    body.extend(TARGET_NAMESPACE.to_ne_bytes());
    body.extend(namespace.to_ne_bytes());
    body
}

fn read(payload: &[u8]) -> Option<IpAddr> {
    let attributes = Attributes::behind(ADDRESS_HEADER_BYTES, payload);
    // IFA_ADDRESS is the other end's on a point-to-point link.
    let bytes = attributes.get(libc::IFA_LOCAL).or_else(|| attributes.get(libc::IFA_ADDRESS))?;
    let address = match bytes.len() {
        4 => IpAddr::from(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        16 => IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)),
        _ => return None,
    };
    (!address.is_loopback()).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_behind_two_devices_is_behind_none() {
        let [a, b]: [IpAddr; 2] = [[10, 0, 0, 1].into(), [10, 0, 0, 2].into()];
        let found = vec![(a, "veth1"), (b, "veth1"), (b, "veth2"), (a, "veth1"), (b, "veth2")];
        assert_eq!(of_one_device(found), HashMap::from([(a, "veth1".to_owned())]));
    }
}
