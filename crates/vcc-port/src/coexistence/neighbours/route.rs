//! The route to an address, by rtnetlink(7).

use std::io;
use std::net::IpAddr;

use vcc_net::netlink::{self, Attributes};

/// struct rtmsg.
const HEADER_BYTES: usize = 12;
const ATTRIBUTE_HEADER_BYTES: usize = 4;

/// The ifindex of the device by which packets to this address leave; None if there is no route.
pub(crate) fn device_to(address: IpAddr) -> io::Result<Option<u32>> {
    match netlink::get(libc::RTM_GETROUTE, &request(address)) {
        Ok(route) => Ok(Attributes::behind(HEADER_BYTES, &route).u32(libc::RTA_OIF)),
        Err(e) if is_unreachable(&e) => Ok(None),
        Err(e) => Err(e),
    }
}

fn request(address: IpAddr) -> Vec<u8> {
    let (family, octets) = match address {
        IpAddr::V4(v4) => (libc::AF_INET, v4.octets().to_vec()),
        IpAddr::V6(v6) => (libc::AF_INET6, v6.octets().to_vec()),
    };
    let mut request = vec![0; HEADER_BYTES];
    request[0] = family as u8;
    request[1] = (octets.len() * 8) as u8;
    request.extend(((ATTRIBUTE_HEADER_BYTES + octets.len()) as u16).to_ne_bytes());
    request.extend(libc::RTA_DST.to_ne_bytes());
    request.extend(octets);
    request
}

fn is_unreachable(error: &io::Error) -> bool {
    let unreachable = [libc::ENETUNREACH, libc::EHOSTUNREACH, libc::EACCES, libc::EINVAL];
    error.raw_os_error().is_some_and(|number| unreachable.contains(&number))
}
