//! The device that a route for one address alone leads to.

use std::net::IpAddr;

use vcc_net::netlink::{self, Attributes, bytes};

/// struct rtmsg.
const ROUTE_HEADER_BYTES: usize = 12;
const LENGTH_OF_DESTINATION: usize = 1;
const TYPE: usize = 7;
const FLAGS: usize = 8;
/// RTM_F_FIB_MATCH (linux/rtnetlink.h): the answer is the table's entry, not what became of the question.
const FIB_MATCH: u32 = 0x2000;
/// RTA_VIA (linux/rtnetlink.h): a gateway of another family.
const VIA: u16 = 18;

/// None where the route is one for many addresses, like the default route of a node whose own device is
/// one end of a pair, or leads to a router.
pub fn device_towards(address: IpAddr) -> Option<u32> {
    let (family, of_address) = match address {
        IpAddr::V4(address) => (libc::AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6, address.octets().to_vec()),
    };
    let whole = of_address.len() as u8 * 8;
    let mut body = vec![0; ROUTE_HEADER_BYTES];
    body[0] = family as u8;
    body[LENGTH_OF_DESTINATION] = whole;
    body[FLAGS..].copy_from_slice(&FIB_MATCH.to_ne_bytes());
    body.extend((of_address.len() as u16 + 4).to_ne_bytes());
    body.extend(libc::RTA_DST.to_ne_bytes());
    body.extend(of_address);
    // No route is an error too.
    let route = netlink::get(libc::RTM_GETROUTE, &body).ok()?;
    let byte = |at: usize| bytes::<1>(&route, at).map(|[byte]| byte);
    // Not an address of the node.
    if byte(LENGTH_OF_DESTINATION)? != whole || byte(TYPE)? != libc::RTN_UNICAST {
        return None;
    }
    let attributes = Attributes::behind(ROUTE_HEADER_BYTES, &route);
    let is_direct = [libc::RTA_GATEWAY, VIA].iter().all(|it| attributes.get(*it).is_none());
    attributes.u32(libc::RTA_OIF).filter(|_| is_direct)
}

#[cfg(test)]
mod tests {
    use vcc_testing::{guest, ip, isolated};

    use super::*;
    use crate::devices::links::ends_of_veths;

    #[test]
    fn a_route_for_many_addresses_leads_to_no_pod() {
        isolated(|| {
            let _other_end = guest();
            ip("link set lo up");
            ip("address add 2001:db8::2/64 dev port nodad");
            ip("route add 10.1.2.3/32 dev port");
            ip("route add 10.1.2.4/32 via 192.0.2.1");
            ip("route add 10.1.3.0/24 dev port");
            ip("route add 10.1.2.5/32 via inet6 2001:db8::1");
            ip("route add default via 192.0.2.1");
            ip("route add 2001:db8:1::3/128 dev port");
            ip("route add 2001:db8:1::4/128 via 2001:db8::1");
            ip("route add default via 2001:db8::1");
            let towards = |text: &str| device_towards(text.parse().expect("an address"));
            let links = ends_of_veths().expect("links");
            let port = links.iter().find(|link| link.name == "port").map(|link| link.index);
            assert!(port.is_some());
            assert_eq!(towards("10.1.2.3"), port);
            assert_eq!(towards("2001:db8:1::3"), port);
            for (address, why) in [
                ("10.1.2.4", "another knows more"),
                ("10.1.2.5", "another knows more"),
                ("10.1.3.1", "a network"),
                ("198.51.100.1", "the default route"),
                ("192.0.2.1", "a network of the node's own"),
                ("192.0.2.2", "an address of the node's own"),
                ("2001:db8:1::4", "another knows more"),
                ("2001:db8:2::1", "the default route"),
                ("2001:db8::2", "an address of the node's own"),
                ("2001:db8::3", "a network of the node's own"),
            ] {
                assert_eq!(towards(address), None, "{address}: {why}");
            }
        });
    }
}
