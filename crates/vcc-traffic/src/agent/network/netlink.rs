//! Addresses, neighbours and routes, by rtnetlink(7), which is the same for both address families.

use socket2::{Domain, Protocol, SockAddr, SockAddrStorage, Socket, Type};
use std::ffi::CString;
use std::io::{self, Read};
use std::net::IpAddr;
use vcc_traffic::plan::Neighbour;
use vcc_traffic::{Doing, Result};

/// An ifindex.
#[derive(Debug, Clone, Copy)]
pub struct Index(u32);

impl Index {
    pub fn of(device: &str) -> Result<Self> {
        let doing = || format!("find the device {device}");
        let name = CString::new(device).map_err(io::Error::from).doing(doing)?;
        // SAFETY: a string with its end.
        match unsafe { libc::if_nametoindex(name.as_ptr()) } {
            0 => Err(io::Error::last_os_error()).doing(doing),
            index => Ok(Self(index)),
        }
    }
}

/// What a route says about the windows of connections along it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Windows {
    /// The locked cwnd.
    pub clamp_segs: Option<u32>,
    pub initial_segs: Option<u32>,
}

/// A connection to the kernel.
pub struct Netlink(Socket);

/// From linux/if_addr.h.
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_F_NODAD: u8 = 0x02;

const ANSWER_BYTES: usize = 4096;
const HEADER_BYTES: usize = 16;

impl Netlink {
    pub fn open() -> Result<Self> {
        let protocol = Protocol::from(libc::NETLINK_ROUTE);
        let socket = Socket::new(Domain::from(libc::AF_NETLINK), Type::RAW, Some(protocol));
        socket
            .and_then(|socket| socket.connect(&kernel()).map(|()| Self(socket)))
            .doing(|| "open a netlink socket".into())
    }

    /// Without duplicate address detection (RFC 4862, 5.4): nobody else has the address.
    pub fn add_address(&self, device: Index, address: IpAddr, prefix_bits: u8) -> Result<()> {
        // struct ifaddrmsg.
        let head = [&[family(address), prefix_bits, IFA_F_NODAD, 0], &word(device.0)[..]];
        let octets = octets(address);
        let body = [head.concat(), attribute(IFA_LOCAL, &octets), attribute(IFA_ADDRESS, &octets)];
        self.ask(libc::RTM_NEWADDR, &body.concat())
            .doing(|| format!("add the address {address}/{prefix_bits}"))
    }

    pub fn add_neighbour(&self, device: Index, neighbour: &Neighbour) -> Result<()> {
        // struct ndmsg.
        let head = [
            &[family(neighbour.address), 0, 0, 0],
            &word(device.0)[..],
            &libc::NUD_PERMANENT.to_ne_bytes(),
            &[0, 0],
        ];
        let body = [
            head.concat(),
            attribute(libc::NDA_DST, &octets(neighbour.address)),
            attribute(libc::NDA_LLADDR, &neighbour.mac),
        ];
        self.ask(libc::RTM_NEWNEIGH, &body.concat())
            .doing(|| format!("add the neighbour {}", neighbour.address))
    }

    /// Adds a route to a host on the link, with a locked cwnd and an initial one (`ip route add ...
    /// cwnd lock N initcwnd N`).
    pub fn add_route(&self, device: Index, to: IpAddr, windows: Windows) -> Result<()> {
        let octets = octets(to);
        // struct rtmsg.
        let head = [
            family(to),
            octets.len() as u8 * 8,
            0,
            0,
            libc::RT_TABLE_MAIN,
            libc::RTPROT_STATIC,
            libc::RT_SCOPE_LINK,
            libc::RTN_UNICAST,
            0,
            0,
            0,
            0,
        ];
        let clamp = windows.clamp_segs.map(|segs| {
            [attribute(RTAX_LOCK, &word(1 << RTAX_CWND)), attribute(RTAX_CWND, &word(segs))]
                .concat()
        });
        let initial = windows.initial_segs.map(|segs| attribute(RTAX_INITCWND, &word(segs)));
        let metrics: Vec<Vec<u8>> = [clamp, initial].into_iter().flatten().collect();
        let body = [
            head.to_vec(),
            attribute(libc::RTA_DST, &octets),
            attribute(libc::RTA_OIF, &word(device.0)),
            attribute(libc::RTA_METRICS, &metrics.concat()),
        ];
        self.ask(libc::RTM_NEWROUTE, &body.concat())
            .doing(|| format!("route to {to} with {windows:?}"))
    }

    /// Sends a request to create something, and waits for its acknowledgement.
    fn ask(&self, kind: u16, body: &[u8]) -> io::Result<()> {
        let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let bytes = (HEADER_BYTES + body.len()) as u32;
        let header = [
            &word(bytes)[..],
            &kind.to_ne_bytes(),
            &(flags as u16).to_ne_bytes(),
            &word(1),
            &word(0),
        ];
        self.0.send(&[&header.concat(), body].concat())?;
        let mut answer = [0; ANSWER_BYTES];
        let bytes = (&self.0).read(&mut answer)?;
        // struct nlmsgerr: 0, or the number of an error, negative.
        let code = answer[..bytes].get(HEADER_BYTES..HEADER_BYTES + 4);
        match code.and_then(|code| code.try_into().ok()).map(i32::from_ne_bytes) {
            Some(0) => Ok(()),
            Some(code) => Err(io::Error::from_raw_os_error(-code)),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// From linux/rtnetlink.h.
const RTAX_LOCK: u16 = 1;
const RTAX_CWND: u16 = 7;
const RTAX_INITCWND: u16 = 11;

/// The address of the kernel.
fn kernel() -> SockAddr {
    let mut storage = SockAddrStorage::zeroed();
    // SAFETY: a sockaddr_nl is smaller than the storage, and all its bits may be anything.
    let address = unsafe { storage.view_as::<libc::sockaddr_nl>() };
    address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
    // SAFETY: of that family, and of that length.
    unsafe { SockAddr::new(storage, size_of::<libc::sockaddr_nl>() as libc::socklen_t) }
}

fn family(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => libc::AF_INET as u8,
        IpAddr::V6(_) => libc::AF_INET6 as u8,
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().into(),
        IpAddr::V6(address) => address.octets().into(),
    }
}

fn word(value: u32) -> [u8; 4] {
    value.to_ne_bytes()
}

/// struct rtattr with its data, padded to four bytes.
fn attribute(kind: u16, data: &[u8]) -> Vec<u8> {
    let bytes = 4 + data.len();
    let mut attribute = [&(bytes as u16).to_ne_bytes()[..], &kind.to_ne_bytes(), data].concat();
    attribute.resize(bytes.next_multiple_of(4), 0);
    attribute
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_whole_words_and_say_what_counts() {
        let attribute = attribute(3, &[7; 6]);
        assert_eq!(attribute.len(), 12);
        assert_eq!(attribute[..2], 10_u16.to_ne_bytes());
        assert_eq!(attribute[4..], [7, 7, 7, 7, 7, 7, 0, 0]);
    }
}
