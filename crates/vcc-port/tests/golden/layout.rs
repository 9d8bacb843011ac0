//! Offsets of a frame's headers, or the reason why the datapath does not parse it.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Deref;

use vcc_frames::wire::*;
use vcc_frames::{Headers, checksum};
use vcc_port::Counter;
use vcc_port::counters;

/// The most extension headers that the datapath follows.
const EXTENSIONS_MAX: usize = 4;
/// The flag MF and the fragment offset (RFC 791, 3.1).
const IPV4_FRAGMENT: u16 = 0x3fff;
const MORE_FRAGMENTS: u16 = 0x2000;

/// A segment's headers and payload, by their offsets from the start of the frame.
#[derive(Clone, Debug)]
pub struct Layout {
    pub vlan: u16,
    headers: Headers,
    pub payload: usize,
}

impl Deref for Layout {
    type Target = Headers;

    fn deref(&self) -> &Headers {
        &self.headers
    }
}

/// Sets the checksums of a frame, if it has the headers of a TCP segment, be it a super-segment.
pub fn fill_checksums(frame: &mut [u8]) {
    if let Ok(at) = Layout::parse(frame, 1) {
        checksum::fill(frame, &at);
    }
}

impl Layout {
    /// A `gso_size` other than 0 marks the frame as a super-segment.
    pub fn parse(frame: &[u8], gso_size: u32) -> Result<Layout, Counter> {
        let (vlan, ethertype, l3) = ethernet(frame)?;
        let (l4, end) = match ethertype {
            ETHERTYPE_IPV4 => ipv4(frame, l3, gso_size)?,
            ETHERTYPE_IPV6 => ipv6(frame, l3, gso_size)?,
            _ => return Err(counters::NOT_IP),
        };
        if l4 + TCP_BYTES > frame.len() {
            return Err(counters::MALFORMED);
        }
        let header_bytes = usize::from(frame[l4 + 12] >> 4) * 4;
        let payload = l4 + header_bytes;
        if header_bytes < TCP_BYTES || payload > end {
            return Err(counters::MALFORMED);
        }
        let headers = Headers { ipv6: ethertype == ETHERTYPE_IPV6, l3, l4, end };
        Ok(Layout { vlan, headers, payload })
    }

    /// The sender and the receiver.
    pub fn addresses(&self, frame: &[u8]) -> [SocketAddr; 2] {
        let ip = |index: usize| match self.ipv6 {
            true => {
                let at = self.l3 + 8 + 16 * index;
                let octets: [u8; 16] = frame[at..at + 16].try_into().unwrap();
                // The flow table has IPv4 addresses in this form, so the two are equal there.
                Ipv6Addr::from(octets).to_canonical()
            }
            false => Ipv4Addr::from(read_u32(frame, self.l3 + 12 + 4 * index)).into(),
        };
        [0, 1].map(|index| SocketAddr::new(ip(index), read_u16(frame, self.l4 + 2 * index)))
    }

    pub fn flags(&self, frame: &[u8]) -> u16 {
        read_u16(frame, self.l4 + 12) & ALL_FLAGS
    }

    pub fn window(&self, frame: &[u8]) -> u16 {
        read_u16(frame, self.l4 + 14)
    }

    pub fn traffic_class(&self, frame: &[u8]) -> u8 {
        match self.ipv6 {
            true => (read_u16(frame, self.l3) >> 4) as u8,
            false => frame[self.l3 + 1],
        }
    }

    pub fn ecn(&self, frame: &[u8]) -> u8 {
        self.traffic_class(frame) & ECN_MASK
    }

    /// Makes the TCP header and the packet longer or shorter.
    pub fn add_header_bytes(&self, frame: &mut [u8], bytes: i32) {
        let length_at = self.l3 + if self.ipv6 { 4 } else { 2 };
        let length = i32::from(read_u16(frame, length_at)) + bytes;
        write_u16(frame, length_at, length as u16);
        frame[self.l4 + 12] = (i32::from(frame[self.l4 + 12]) + bytes / 4 * 16) as u8;
    }

    pub fn set_ecn(&self, frame: &mut [u8], ecn: u8) {
        let (at, shift) = (self.l3 + 1, if self.ipv6 { 4 } else { 0 });
        frame[at] = frame[at] & !(ECN_MASK << shift) | ecn << shift;
    }

    pub fn set_flags(&self, frame: &mut [u8], flags: u16) {
        let kept = read_u16(frame, self.l4 + 12) & !ALL_FLAGS;
        write_u16(frame, self.l4 + 12, kept | flags);
    }

    pub fn set_window(&self, frame: &mut [u8], window: u16) {
        write_u16(frame, self.l4 + 14, window);
    }
}

/// The first fragment of a packet, as if it were all of the packet. None: it is no first fragment.
pub fn as_if_whole(frame: &[u8]) -> Option<Vec<u8>> {
    let (_, ethertype, l3) = ethernet(frame).ok()?;
    let mut whole = frame.to_vec();
    if ethertype == ETHERTYPE_IPV4 {
        let word = read_u16(frame.get(l3..)?.first_chunk::<IPV4_BYTES>()?, 6);
        write_u16(&mut whole, l3 + 6, word & !IPV4_FRAGMENT);
        return (word & IPV4_FRAGMENT == MORE_FRAGMENTS).then_some(whole);
    }
    let (mut next_at, mut at) = (l3 + 6, l3 + IPV6_BYTES);
    for _ in 0..EXTENSIONS_MAX {
        let header = frame.get(at..at + 8)?;
        match *frame.get(next_at)? {
            PROTOCOL_FRAGMENT => {
                whole[next_at] = header[0];
                let bytes = read_u16(frame, l3 + 4).checked_sub(8)?;
                write_u16(&mut whole, l3 + 4, bytes);
                whole.drain(at..at + 8);
                let is_first = read_u16(header, 2) & 0xfff8 == 0 && header[0] == PROTOCOL_TCP;
                return is_first.then_some(whole);
            }
            PROTOCOL_HOP_BY_HOP | PROTOCOL_ROUTING | PROTOCOL_DESTINATION => {
                (next_at, at) = (at, at + 8 * (1 + usize::from(header[1])));
            }
            _ => return None,
        }
    }
    None
}

/// Whether a receiver may find TCP in the frame. Up to four tags and sixteen extension headers are
/// skipped; behind more, anything may follow.
pub fn may_hold_tcp(frame: &[u8]) -> bool {
    fn ipv6(next: u8, rest: &[u8], headers_left: usize) -> bool {
        match (next, headers_left, rest) {
            (_, 0, _) | (PROTOCOL_TCP, ..) => true,
            (PROTOCOL_FRAGMENT, _, [then, _, high, low, ..]) if [*high, low & 0xf8] != [0, 0] => {
                *then == PROTOCOL_TCP
            }
            (PROTOCOL_FRAGMENT, _, [then, _, _, _, ..]) => {
                ipv6(*then, rest.get(8..).unwrap_or_default(), headers_left - 1)
            }
            (
                PROTOCOL_HOP_BY_HOP | PROTOCOL_ROUTING | PROTOCOL_DESTINATION,
                _,
                [then, units, _, _, ..],
            ) => {
                let behind = rest.get(8 * (1 + usize::from(*units))..).unwrap_or_default();
                ipv6(*then, behind, headers_left - 1)
            }
            _ => false,
        }
    }
    let mut rest = frame.get(12..).unwrap_or_default();
    for _ in 0..=4 {
        let Some((ethertype, behind)) = rest.split_first_chunk() else { return false };
        rest = match u16::from_be_bytes(*ethertype) {
            ETHERTYPE_VLAN | ETHERTYPE_QINQ => behind.get(2..).unwrap_or_default(),
            ETHERTYPE_IPV4 => return behind.get(9) == Some(&PROTOCOL_TCP),
            ETHERTYPE_IPV6 if behind.len() >= 7 => {
                return ipv6(behind[6], behind.get(IPV6_BYTES..).unwrap_or_default(), 16);
            }
            _ => return false,
        };
    }
    true
}

fn ethernet(frame: &[u8]) -> Result<(u16, u16, usize), Counter> {
    if frame.len() < ETHERNET_BYTES {
        return Err(counters::NOT_IP);
    }
    let ethertype = read_u16(frame, ETHERNET_BYTES - 2);
    if ethertype != ETHERTYPE_VLAN {
        return Ok((0, ethertype, ETHERNET_BYTES));
    }
    let l3 = ETHERNET_BYTES + TAG_BYTES;
    if frame.len() < l3 {
        return Err(counters::NOT_IP);
    }
    Ok((read_u16(frame, ETHERNET_BYTES) & 0x0fff, read_u16(frame, l3 - 2), l3))
}

/// The end of an IP packet. The length of a super-segment above 64 KiB is 0.
fn packet_end(frame: &[u8], l3: usize, ip_bytes: usize, gso_size: u32) -> Result<usize, Counter> {
    match ip_bytes {
        0 if gso_size > 0 => Ok(frame.len()),
        _ if l3 + ip_bytes <= frame.len() => Ok(l3 + ip_bytes),
        _ => Err(counters::MALFORMED),
    }
}

fn ipv4(frame: &[u8], l3: usize, gso_size: u32) -> Result<(usize, usize), Counter> {
    let ip = &frame[l3..];
    if ip.len() < IPV4_BYTES || ip[0] >> 4 != 4 || ip[0] & 15 < 5 {
        return Err(counters::MALFORMED);
    }
    if ip[9] != PROTOCOL_TCP {
        return Err(counters::NOT_TCP);
    }
    if read_u16(ip, 6) & IPV4_FRAGMENT != 0 {
        return Err(counters::FRAGMENT);
    }
    let l4 = l3 + usize::from(ip[0] & 15) * 4;
    Ok((l4, packet_end(frame, l3, usize::from(read_u16(ip, 2)), gso_size)?))
}

fn ipv6(frame: &[u8], l3: usize, gso_size: u32) -> Result<(usize, usize), Counter> {
    let ip = &frame[l3..];
    if ip.len() < IPV6_BYTES || ip[0] >> 4 != 6 {
        return Err(counters::MALFORMED);
    }
    let mut next = ip[6];
    let mut at = IPV6_BYTES;
    for _ in 0..EXTENSIONS_MAX {
        match next {
            PROTOCOL_TCP => break,
            PROTOCOL_FRAGMENT => return Err(counters::FRAGMENT),
            PROTOCOL_HOP_BY_HOP | PROTOCOL_ROUTING | PROTOCOL_DESTINATION => {}
            _ => return Err(counters::NOT_TCP),
        }
        let Some(&[following, words]) = ip.get(at..at + 2) else {
            return Err(counters::MALFORMED);
        };
        next = following;
        at += (usize::from(words) + 1) * 8;
    }
    if next != PROTOCOL_TCP {
        return Err(counters::DEEP);
    }
    let ip_bytes = match usize::from(read_u16(ip, 4)) {
        0 => 0,
        after_header => IPV6_BYTES + after_header,
    };
    Ok((l3 + at, packet_end(frame, l3, ip_bytes, gso_size)?))
}
