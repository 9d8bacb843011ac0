//! TCP segments made by hand, and put on a device as a virtual machine puts them there.

use std::ffi::CString;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::common::{STALLED, address};

pub const FIN: u16 = 0x01;
pub const SYN: u16 = 0x02;
pub const PSH: u16 = 0x08;
pub const ACK: u16 = 0x10;

const ETHERNET_BYTES: usize = 14;
const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;
const TCP_BYTES: usize = 20;
const IPV6_FRAGMENT_BYTES: usize = 8;
const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_FRAGMENT: u8 = 44;
/// `struct virtio_net_hdr`: of what follows, no more than Ethernet's header is linear in the kernel, if
/// it fills a page.
const VNET_HEADER: [u8; 10] = [0, 0, ETHERNET_BYTES as u8, 0, 0, 0, 0, 0, 0, 0];
const PACKET_VNET_HDR: libc::c_int = 15;
/// Where a packet that has to go in two is cut: whole units of eight bytes.
const CUT_BYTES: usize = 512;

/// Of a connection between a forged end and a true one, seen from the forged one.
#[derive(Clone, Debug)]
pub struct Segment {
    pub v6: bool,
    pub forged_port: u16,
    pub peer_port: u16,
    pub seq: u32,
    pub ack: u32,
    pub flags: u16,
    /// Whole words.
    pub options: Vec<u8>,
    pub payload: Vec<u8>,
}

impl Segment {
    pub fn new(v6: bool, forged_port: u16, peer_port: u16) -> Self {
        let (options, payload) = (Vec::new(), Vec::new());
        let (seq, ack) = (0xffff_f000, 0);
        Segment { v6, forged_port, peer_port, seq, ack, flags: ACK, options, payload }
    }

    /// The handshake's next segment behind `came`, without more to say.
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

/// Of the device of a host, as its number says.
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
    /// In the namespace of the calling thread, for the device there.
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

    /// The next segment of the connection that the peer sends; of any, where no port of its is known.
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

    /// Of a segment to the forged end; none where it is something else.
    fn parse(&self, frame: &[u8]) -> Option<Segment> {
        let v6 = match frame.get(12..14)? {
            [8, 0] => false,
            [0x86, 0xdd] => true,
            _ => return None,
        };
        let ip = &frame[ETHERNET_BYTES..];
        let (protocol_at, to, tcp_at) =
            if v6 { (6, 24..40, IPV6_BYTES) } else { (9, 16..20, IPV4_BYTES) };
        let to_us = ip.get(to)? == octets(address(v6, self.forged_host));
        let tcp = ip.get(tcp_at..).filter(|tcp| tcp.len() >= TCP_BYTES)?;
        if ip[protocol_at] != PROTOCOL_TCP || !to_us {
            return None;
        }
        let half = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
        let word = |at: usize| u32::from(half(at)) << 16 | u32::from(half(at + 2));
        let mut segment = Segment::new(v6, half(2), half(0));
        (segment.seq, segment.ack, segment.flags) = (word(4), word(8), half(12) & 0x1ff);
        Some(segment)
    }

    fn tcp(&self, segment: &Segment) -> Vec<u8> {
        let words = ((TCP_BYTES + segment.options.len()) / 4) as u16;
        let mut tcp = Vec::new();
        tcp.extend(segment.forged_port.to_be_bytes());
        tcp.extend(segment.peer_port.to_be_bytes());
        tcp.extend(segment.seq.to_be_bytes());
        tcp.extend(segment.ack.to_be_bytes());
        tcp.extend((words << 12 | segment.flags).to_be_bytes());
        tcp.extend([0xff, 0xff, 0, 0, 0, 0]);
        tcp.extend(&segment.options);
        tcp.extend(&segment.payload);
        let [from, to] = self.addresses(segment.v6);
        let length = (tcp.len() as u32).to_be_bytes();
        let sum = sum(&[&from, &to, &[0, PROTOCOL_TCP], &length, &tcp]);
        tcp[16..18].copy_from_slice(&(!sum).to_be_bytes());
        tcp
    }

    fn addresses(&self, v6: bool) -> [Vec<u8>; 2] {
        [self.forged_host, self.peer_host].map(|host| octets(address(v6, host)))
    }

    fn link(&self, tags: &[u16], v6: bool, packet: Vec<u8>) -> Vec<u8> {
        let mut frame = [mac(self.peer_host), mac(self.forged_host)].concat();
        for tag in tags {
            frame.extend(tag.to_be_bytes());
            frame.extend([0, 0]);
        }
        frame.extend(if v6 { [0x86, 0xdd] } else { [8, 0] });
        frame.extend(packet);
        frame
    }

    /// `part` is IPv4's flags and fragment offset.
    fn ipv4(&self, options: &[u8], part: u16, id: u16, payload: &[u8]) -> Vec<u8> {
        let header_bytes = IPV4_BYTES + options.len();
        let mut ip = vec![0x40 | (header_bytes / 4) as u8, 0];
        ip.extend(((header_bytes + payload.len()) as u16).to_be_bytes());
        ip.extend(id.to_be_bytes());
        ip.extend(part.to_be_bytes());
        ip.extend([64, PROTOCOL_TCP, 0, 0]);
        ip.extend(self.addresses(false).concat());
        ip.extend(options);
        let check = !sum(&[&ip]);
        ip[10..12].copy_from_slice(&check.to_be_bytes());
        ip.extend(payload);
        ip
    }

    fn ipv6(&self, next: u8, payload: &[u8]) -> Vec<u8> {
        let mut ip = vec![0x60, 0, 0, 0];
        ip.extend((payload.len() as u16).to_be_bytes());
        ip.extend([next, 64]);
        ip.extend(self.addresses(true).concat());
        ip.extend(payload);
        ip
    }

    pub fn frame(&self, segment: &Segment) -> Vec<u8> {
        self.tagged(segment, &[])
    }

    /// Each tag of this type, with VLAN id 0: it says no more than a priority.
    pub fn tagged(&self, segment: &Segment, tags: &[u16]) -> Vec<u8> {
        let tcp = self.tcp(segment);
        let packet = match segment.v6 {
            true => self.ipv6(PROTOCOL_TCP, &tcp),
            false => self.ipv4(&[], 0, 0, &tcp),
        };
        self.link(tags, segment.v6, packet)
    }

    pub fn behind_ip_options(&self, segment: &Segment) -> Vec<u8> {
        self.link(&[], false, self.ipv4(&[1; 40], 0, 0, &self.tcp(segment)))
    }

    /// Each header by its type and all bytes but the first, which names the next one.
    pub fn behind(&self, segment: &Segment, headers: &[(u8, Vec<u8>)]) -> Vec<u8> {
        let mut payload = self.tcp(segment);
        let mut next = PROTOCOL_TCP;
        for (kind, rest) in headers.iter().rev() {
            payload = [&[next][..], rest, &payload].concat();
            next = *kind;
        }
        self.link(&[], true, self.ipv6(next, &payload))
    }

    /// In two. The identification is the sequence number's, another for each segment.
    pub fn ipv4_fragments(&self, segment: &Segment) -> Vec<Vec<u8>> {
        let (tcp, id) = (self.tcp(segment), segment.seq as u16);
        let (first, last) = tcp.split_at(CUT_BYTES);
        let parts = [(0x2000, first), ((CUT_BYTES / 8) as u16, last)];
        let packets = parts.map(|(part, payload)| self.ipv4(&[], part, id, payload));
        packets.map(|packet| self.link(&[], false, packet)).to_vec()
    }

    pub fn ipv6_fragments(&self, segment: &Segment) -> Vec<Vec<u8>> {
        let tcp = self.tcp(segment);
        let (first, last) = tcp.split_at(CUT_BYTES);
        let parts = [(1u16, first), (CUT_BYTES as u16, last)];
        let packets = parts.map(|(part, payload)| {
            let mut header = vec![PROTOCOL_TCP, 0];
            header.extend(part.to_be_bytes());
            header.extend(segment.seq.to_be_bytes());
            assert_eq!(header.len(), IPV6_FRAGMENT_BYTES);
            self.ipv6(PROTOCOL_FRAGMENT, &[&header, payload].concat())
        });
        packets.map(|packet| self.link(&[], true, packet)).to_vec()
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// RFC 1071. All but the last part are whole words.
fn sum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let mut sum: u32 =
        words.map(|word| u32::from(word[0]) << 8 | word.get(1).map_or(0, |&b| u32::from(b))).sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
