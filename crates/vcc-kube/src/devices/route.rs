//! The device that a route leads to.

use std::net::IpAddr;

use vcc_port::netlink::{self, Attributes};

/// struct rtmsg.
const ROUTE_HEADER_BYTES: usize = 12;

pub fn device_towards(address: IpAddr) -> Option<u32> {
    let (family, bytes) = match address {
        IpAddr::V4(address) => (libc::AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6, address.octets().to_vec()),
    };
    let mut body = vec![0; ROUTE_HEADER_BYTES];
    body[0] = family as u8;
    // The length of the destination's prefix.
    body[1] = bytes.len() as u8 * 8;
    body.extend((bytes.len() as u16 + 4).to_ne_bytes());
    body.extend(libc::RTA_DST.to_ne_bytes());
    body.extend(bytes);
    // No route is an error too.
    let route = netlink::get(libc::RTM_GETROUTE, &body).ok()?;
    Attributes::behind(ROUTE_HEADER_BYTES, &route).u32(libc::RTA_OIF)
}
