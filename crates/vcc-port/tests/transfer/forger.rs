//! Forged TCP segments, sent on a device as a virtual machine sends them.

use std::ffi::CString;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use vcc_frames::wire::*;
use vcc_frames::{Packet, checksum};

use crate::common::{STALLED, address};

const IPV6_FRAGMENT_BYTES: usize = 8;
/// `struct virtio_net_hdr`: in the kernel, only the Ethernet header of a large frame is linear.
const VNET_HEADER: [u8; 10] = [0, 0, ETHERNET_BYTES as u8, 0, 0, 0, 0, 0, 0, 0];
const PACKET_VNET_HDR: libc::c_int = 15;
/// The length of the first fragment, a multiple of eight bytes.
const CUT_BYTES: usize = 512;

/// A segment of a connection, as seen from the forged end.
#[derive(Clone, Debug)]
pub struct Segment {
    pub v6: bool,
    pub forged_port: u16,
    pub peer_port: u16,
    pub seq: u32,
    pub ack: u32,
    pub flags: u16,
    /// A multiple of four bytes.
    pub options: Vec<u8>,
    pub payload: Vec<u8>,
}

impl Segment {
    pub fn new(v6: bool, forged_port: u16, peer_port: u16) -> Self {
        let (options, payload) = (Vec::new(), Vec::new());
        let (seq, ack) = (0xffff_f000, 0);
        Segment { v6, forged_port, peer_port, seq, ack, flags: ACK, options, payload }
    }

    /// Becomes the ACK of `came`, without options.
    pub fn follow(&mut self, came: &Segment) {
        self.seq = came.ack;
        self.ack = came.seq.wrapping_add(u32::from(came.flags & SYN != 0));
        self.flags = ACK;
        self.options.clear();
    }
}

pub struct Forger {
    socket: OwnedFd,
    forged_host: u8,
    peer_host: u8,
}

/// The MAC address of a host.
fn mac(host: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, host]
}

pub fn mac_text(host: u8) -> String {
    mac(host).map(|byte| format!("{byte:02x}")).join(":")
}

fn checked(status: libc::c_int, what: &str) -> libc::c_int {
    assert!(status >= 0, "{what}: {}", io::Error::last_os_error());
    status
}

impl Forger {
    /// For a device in the calling thread's network namespace.
    pub fn new(device: &str, forged_host: u8, peer_host: u8) -> Self {
        let all = (libc::ETH_P_ALL as u16).to_be();
        // SAFETY: no pointers; the descriptor is nobody else's.
        let socket = unsafe {
            let raw = libc::socket(libc::AF_PACKET, libc::SOCK_RAW, i32::from(all));
            OwnedFd::from_raw_fd(checked(raw, "a packet socket"))
        };
        let name = CString::new(device).expect("a name");
        // SAFETY: plain data, and zeros are a value of it.
        let mut place: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        place.sll_family = libc::AF_PACKET as u16;
        place.sll_protocol = all;
        // SAFETY: the name is a C string.
        place.sll_ifindex = unsafe { libc::if_nametoindex(name.as_ptr()) } as i32;
        let on: libc::c_int = 1;
        let patience = libc::timeval { tv_sec: STALLED.as_secs() as libc::time_t, tv_usec: 0 };
        let options: [(_, _, *const libc::c_void, usize); 2] = [
            (libc::SOL_PACKET, PACKET_VNET_HDR, (&raw const on).cast(), size_of_val(&on)),
            (
                libc::SOL_SOCKET,
                libc::SO_RCVTIMEO,
                (&raw const patience).cast(),
                size_of_val(&patience),
            ),
        ];
        for (level, option, value, bytes) in options {
            // SAFETY: the value lives, and has so many bytes.
            let status =
                unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, bytes as u32) };
            checked(status, "an option of a packet socket");
        }
        // SAFETY: the address lives, and has so many bytes.
        let status = unsafe {
            libc::bind(socket.as_raw_fd(), (&raw const place).cast(), size_of_val(&place) as u32)
        };
        checked(status, "bind a packet socket");
        Forger { socket, forged_host, peer_host }
    }

    pub fn send(&self, frame: &[u8]) {
        let bytes = [&VNET_HEADER, frame].concat();
        // SAFETY: the bytes live.
        let sent =
            unsafe { libc::send(self.socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0) };
        assert_eq!(sent, bytes.len() as isize, "send: {}", io::Error::last_os_error());
    }

    /// The next segment of the peer on this connection; if its port is 0, of any port.
    pub fn receive(&self, of: &Segment) -> Segment {
        let mut bytes = vec![0; 1 << 16];
        loop {
            // SAFETY: the buffer lives.
            let got = unsafe {
                libc::recv(self.socket.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len(), 0)
            };
            assert!(got > 0, "nothing came: {}", io::Error::last_os_error());
            let came = self.parse(&bytes[VNET_HEADER.len()..got as usize]);
            let wanted = |came: &Segment| {
                (came.v6, came.forged_port) == (of.v6, of.forged_port)
                    && [0, came.peer_port].contains(&of.peer_port)
            };
            if let Some(came) = came.filter(wanted) {
                return came;
            }
        }
    }

    /// Parses a segment to the forged end; None for other frames.
    fn parse(&self, frame: &[u8]) -> Option<Segment> {
        let ip = frame.get(ETHERNET_BYTES..)?;
        let v6 = match read_u16(frame, ETHERNET_BYTES - 2) {
            ETHERTYPE_IPV4 => false,
            ETHERTYPE_IPV6 => true,
            _ => return None,
        };
        let (protocol_at, to, tcp_at) =
            if v6 { (6, 24..40, IPV6_BYTES) } else { (9, 16..20, IPV4_BYTES) };
        let to_us = ip.get(to)? == octets(address(v6, self.forged_host));
        let tcp = ip.get(tcp_at..).filter(|tcp| tcp.len() >= TCP_BYTES)?;
        if ip[protocol_at] != PROTOCOL_TCP || !to_us {
            return None;
        }
        let mut segment = Segment::new(v6, read_u16(tcp, 2), read_u16(tcp, 0));
        (segment.seq, segment.ack) = (read_u32(tcp, 4), read_u32(tcp, 8));
        segment.flags = read_u16(tcp, 12) & ALL_FLAGS;
        Some(segment)
    }

    fn packet(&self, segment: &Segment) -> Packet {
        let end = |host, port| SocketAddr::new(address(segment.v6, host), port);
        let from = end(self.forged_host, segment.forged_port);
        let to = end(self.peer_host, segment.peer_port);
        Packet {
            macs: [mac(self.peer_host), mac(self.forged_host)],
            ipv4_id: segment.seq as u16,
            seq: segment.seq,
            ack: segment.ack,
            flags: segment.flags,
            options: segment.options.clone(),
            payload: segment.payload.clone(),
            ..Packet::new(from, to)
        }
    }

    pub fn frame(&self, segment: &Segment) -> Vec<u8> {
        self.packet(segment).frame()
    }

    /// Each tag has this type and VLAN id 0, so it is a priority tag.
    pub fn tagged(&self, segment: &Segment, tags: &[u16]) -> Vec<u8> {
        let tags = tags.iter().map(|tag| (*tag, 0)).collect();
        Packet { tags, ..self.packet(segment) }.frame()
    }

    pub fn behind_ip_options(&self, segment: &Segment) -> Vec<u8> {
        Packet { ip_options: vec![1; 40], ..self.packet(segment) }.frame()
    }

    /// Behind IPv6 extension headers: see [`Packet::extensions`].
    pub fn behind(&self, segment: &Segment, headers: &[(u8, Vec<u8>)]) -> Vec<u8> {
        Packet { extensions: headers.to_vec(), ..self.packet(segment) }.frame()
    }

    /// In two fragments.
    pub fn ipv4_fragments(&self, segment: &Segment) -> Vec<Vec<u8>> {
        const MORE_FRAGMENTS: u16 = 0x2000;
        let frame = self.frame(segment);
        let (headers, tcp) = frame.split_at(ETHERNET_BYTES + IPV4_BYTES);
        let (first, last) = tcp.split_at(CUT_BYTES);
        let fragment = |flags_and_offset, part: &[u8]| {
            let mut headers = headers.to_vec();
            let ip = &mut headers[ETHERNET_BYTES..];
            write_u16(ip, 2, (IPV4_BYTES + part.len()) as u16);
            write_u16(ip, 6, flags_and_offset);
            checksum::fill_ipv4(ip);
            [&headers, part].concat()
        };
        vec![fragment(MORE_FRAGMENTS, first), fragment((CUT_BYTES / 8) as u16, last)]
    }

    /// In two fragments. The identification is the sequence number, so each segment has another.
    pub fn ipv6_fragments(&self, segment: &Segment) -> Vec<Vec<u8>> {
        const MORE_FRAGMENTS: u16 = 1;
        let frame = self.frame(segment);
        let (headers, tcp) = frame.split_at(ETHERNET_BYTES + IPV6_BYTES);
        let (first, last) = tcp.split_at(CUT_BYTES);
        let fragment = |offset_and_flags: u16, part: &[u8]| {
            let mut headers = headers.to_vec();
            let ip = &mut headers[ETHERNET_BYTES..];
            write_u16(ip, 4, (IPV6_FRAGMENT_BYTES + part.len()) as u16);
            ip[6] = PROTOCOL_FRAGMENT;
            headers.extend([PROTOCOL_TCP, 0]);
            headers.extend(offset_and_flags.to_be_bytes());
            headers.extend(segment.seq.to_be_bytes());
            [&headers, part].concat()
        };
        vec![fragment(MORE_FRAGMENTS, first), fragment(CUT_BYTES as u16, last)]
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}
