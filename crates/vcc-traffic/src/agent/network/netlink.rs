//! Addresses, neighbours and routes, by rtnetlink(7), which is the same for both address families.

use std::ffi::CString;
use std::io;
use std::net::IpAddr;
use vcc_net::netlink::{self, attribute};
use vcc_traffic::plan::Neighbour;
use vcc_traffic::{Doing, Result};

/// An ifindex.
#[derive(Debug, Clone, Copy)]
pub struct Index(u32);

impl Index {
    pub fn find(device: &str) -> Result<Self> {
        let doing = || format!("find the device {device}");
        let name = CString::new(device).map_err(io::Error::from).doing(doing)?;
        // SAFETY: a string with its end.
        match unsafe { libc::if_nametoindex(name.as_ptr()) } {
            0 => Err(io::Error::last_os_error()).doing(doing),
            index => Ok(Self(index)),
        }
    }
}

/// What a route sets for the windows of connections along it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Windows {
    /// The locked cwnd.
    pub clamp_segs: Option<u32>,
    pub initial_segs: Option<u32>,
}

/// From linux/if_addr.h.
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_F_NODAD: u8 = 0x02;

impl Index {
    /// Without duplicate address detection (RFC 4862, 5.4): nobody else has the address.
    pub fn add_address(self, address: IpAddr, prefix_bits: u8) -> Result<()> {
        // struct ifaddrmsg.
        let head = [&[family(address), prefix_bits, IFA_F_NODAD, 0], &word(self.0)[..]];
        let octets = octets(address);
        let body = [head.concat(), attribute(IFA_LOCAL, &octets), attribute(IFA_ADDRESS, &octets)];
        netlink::create(libc::RTM_NEWADDR, &body.concat())
            .doing(|| format!("add the address {address}/{prefix_bits}"))
    }

    pub fn add_neighbour(self, neighbour: &Neighbour) -> Result<()> {
        // struct ndmsg.
        let head = [
            &[family(neighbour.address), 0, 0, 0],
            &word(self.0)[..],
            &libc::NUD_PERMANENT.to_ne_bytes(),
            &[0, 0],
        ];
        let body = [
            head.concat(),
            attribute(libc::NDA_DST, &octets(neighbour.address)),
            attribute(libc::NDA_LLADDR, &neighbour.mac),
        ];
        netlink::create(libc::RTM_NEWNEIGH, &body.concat())
            .doing(|| format!("add the neighbour {}", neighbour.address))
    }

    /// Adds a route to a host on the link, with a locked cwnd and an initial one (`ip route add ...
    /// cwnd lock N initcwnd N`).
    pub fn add_route(self, to: IpAddr, windows: Windows) -> Result<()> {
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
            attribute(libc::RTA_OIF, &word(self.0)),
            attribute(libc::RTA_METRICS, &metrics.concat()),
        ];
        netlink::create(libc::RTM_NEWROUTE, &body.concat())
            .doing(|| format!("route to {to} with {windows:?}"))
    }
}

/// From linux/rtnetlink.h.
const RTAX_LOCK: u16 = 1;
const RTAX_CWND: u16 = 7;
const RTAX_INITCWND: u16 = 11;

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
