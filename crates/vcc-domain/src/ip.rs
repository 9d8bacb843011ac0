//! IPv4 and IPv6: parsing up to TCP, and rewriting of ECN field and length.

use std::net::Ipv4Addr;

use vcc_engine::sys;

use crate::checksum;
use crate::counters::Reason;
use crate::frame::Frame;
use crate::link::Link;
use vcc_net::wire::*;

const IPV4_LENGTH_AT: usize = 2;
const IPV6_LENGTH_AT: usize = 4;
/// More fragments, and the fragment offset (RFC 791, 3.1).
const IPV4_FRAGMENT_MASK: u16 = 0x3fff;
const IPV4_OFFSET_MASK: u16 = 0x1fff;
/// Of IPv6 (RFC 8200, 4.5).
const FRAGMENT_HEADER_BYTES: usize = 8;
const IPV6_OFFSET_MASK: u16 = 0xfff8;

const PROTOCOL_HOP_BY_HOP: u8 = 0;
const PROTOCOL_ROUTING: u8 = 43;
const PROTOCOL_FRAGMENT: u8 = 44;
const PROTOCOL_DESTINATION: u8 = 60;
/// Maximum number of extension headers, as in the datapath.
const IPV6_EXTENSIONS_MAX: usize = 4;

/// A packet with TCP, or the first fragment of one. Offsets are from the frame's start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ip {
    pub ipv6: bool,
    pub at: usize,
    pub tcp_at: usize,
    /// IPv4's total length or IPv6's payload length; 0 for a super-segment above 64 KiB (RFC 2675).
    pub length: u16,
    /// Size of TCP with its payload, by the IP header, not by the frame, which may be padded.
    pub tcp_bytes: usize,
    /// `enum vcc_ip_ecn`.
    pub ecn: u8,
}

/// Source and destination; those of IPv4 are mapped (RFC 4291, 2.5.5.2). Numbers stay in registers.
pub(crate) type Addresses = [u128; 2];

/// With `FRAGMENT`, of the first fragment alone; without, of a packet that is no fragment.
///
/// # Errors
/// The reason why the packet is not translated.
#[inline]
pub(crate) fn parse<const FRAGMENT: bool>(
    frame: &Frame,
    link: &Link,
) -> Result<(Ip, Addresses), Reason> {
    match link.ethertype {
        ETHERTYPE_IPV4 => parse_v4::<FRAGMENT>(frame, link.l3_at),
        ETHERTYPE_IPV6 => parse_v6::<FRAGMENT>(frame, link.l3_at),
        _ => Err(sys::COUNT_NOT_IP),
    }
}

#[inline]
fn parse_v4<const FRAGMENT: bool>(frame: &Frame, at: usize) -> Result<(Ip, Addresses), Reason> {
    let ip = frame.bytes[at..].first_chunk::<IPV4_BYTES>().ok_or(sys::COUNT_MALFORMED)?;
    if ip[0] >> 4 != 4 || usize::from(ip[0] & 15) * 4 < IPV4_BYTES {
        return Err(sys::COUNT_MALFORMED);
    }
    if ip[9] != PROTOCOL_TCP {
        return Err(sys::COUNT_NOT_TCP);
    }
    if is_fragment(ip) != FRAGMENT || FRAGMENT && read_u16(ip, 6) & IPV4_OFFSET_MASK != 0 {
        return Err(sys::COUNT_FRAGMENT);
    }
    let header_bytes = usize::from(ip[0] & 15) * 4;
    let length = read_u16(ip, IPV4_LENGTH_AT);
    let addresses = [IPV4_SOURCE_AT, IPV4_DESTINATION_AT].map(|at| address_v4(ip, at));
    let ip = Ip {
        ipv6: false,
        at,
        tcp_at: at + header_bytes,
        length,
        tcp_bytes: tcp_bytes(frame, at, usize::from(length), header_bytes)?,
        ecn: ip[1] & 3,
    };
    Ok((ip, addresses))
}

fn parse_v6<const FRAGMENT: bool>(frame: &Frame, at: usize) -> Result<(Ip, Addresses), Reason> {
    let ip = &frame.bytes[at..];
    if ip.len() < IPV6_BYTES || ip[0] >> 4 != 6 {
        return Err(sys::COUNT_MALFORMED);
    }
    let header_bytes =
        if FRAGMENT { tcp_of_first_fragment(ip)? } else { tcp_behind_extensions(ip)? };
    let length = read_u16(ip, IPV6_LENGTH_AT);
    let ip_bytes = if length == 0 { 0 } else { IPV6_BYTES + usize::from(length) };
    let addresses = [IPV6_SOURCE_AT, IPV6_DESTINATION_AT].map(|at| address_v6(ip, at));
    let ip = Ip {
        ipv6: true,
        at,
        tcp_at: at + header_bytes,
        length,
        tcp_bytes: tcp_bytes(frame, at, ip_bytes, header_bytes)?,
        ecn: ip[1] >> 4 & 3,
    };
    Ok((ip, addresses))
}

/// The address at an offset of an IPv4 header, mapped (RFC 4291, 2.5.5.2).
#[inline]
pub(crate) fn address_v4(ip: &[u8], at: usize) -> u128 {
    Ipv4Addr::from_bits(read_u32(ip, at)).to_ipv6_mapped().to_bits()
}

#[inline]
pub(crate) fn address_v6(ip: &[u8], at: usize) -> u128 {
    let mut address = [0; 16];
    address.copy_from_slice(&ip[at..at + 16]);
    u128::from_be_bytes(address)
}

/// The total length of an IPv4 packet, by its header.
pub(crate) fn length_v4(ip: &[u8]) -> usize {
    read_u16(ip, IPV4_LENGTH_AT).into()
}

/// The length of an IPv6 packet behind its first header, by this.
pub(crate) fn length_v6(ip: &[u8]) -> usize {
    read_u16(ip, IPV6_LENGTH_AT).into()
}

/// Is the IPv4 packet a fragment?
pub(crate) fn is_fragment(ip: &[u8]) -> bool {
    read_u16(ip, 6) & IPV4_FRAGMENT_MASK != 0
}

/// Size of the headers before TCP (RFC 8200, 4).
pub(crate) fn tcp_behind_extensions(ip: &[u8]) -> Result<usize, Reason> {
    match behind_extensions(ip)? {
        (PROTOCOL_TCP, bytes) => Ok(bytes),
        _ => Err(sys::COUNT_FRAGMENT),
    }
}

/// The same, of the first fragment.
fn tcp_of_first_fragment(ip: &[u8]) -> Result<usize, Reason> {
    let (next, bytes) = behind_extensions(ip)?;
    let head = ip.get(bytes..bytes + FRAGMENT_HEADER_BYTES).ok_or(sys::COUNT_FRAGMENT)?;
    let is_first = read_u16(head, 2) & IPV6_OFFSET_MASK == 0;
    if next == PROTOCOL_FRAGMENT && head[0] == PROTOCOL_TCP && is_first {
        Ok(bytes + FRAGMENT_HEADER_BYTES)
    } else {
        Err(sys::COUNT_FRAGMENT)
    }
}

/// TCP's header or that of a fragment: which, and the size of the headers before it.
fn behind_extensions(ip: &[u8]) -> Result<(u8, usize), Reason> {
    let mut next = ip[6];
    let mut bytes = IPV6_BYTES;
    for _ in 0..IPV6_EXTENSIONS_MAX {
        match next {
            PROTOCOL_TCP | PROTOCOL_FRAGMENT => return Ok((next, bytes)),
            PROTOCOL_HOP_BY_HOP | PROTOCOL_ROUTING | PROTOCOL_DESTINATION => {}
            _ => return Err(sys::COUNT_NOT_TCP),
        }
        let Some(&[following, words]) = ip.get(bytes..bytes + 2) else {
            return Err(sys::COUNT_MALFORMED);
        };
        next = following;
        bytes += (usize::from(words) + 1) * 8;
    }
    if next == PROTOCOL_TCP { Ok((next, bytes)) } else { Err(sys::COUNT_DEEP) }
}

/// The size of TCP in an IP packet of `ip_bytes` at `at`.
fn tcp_bytes(
    frame: &Frame,
    at: usize,
    ip_bytes: usize,
    header_bytes: usize,
) -> Result<usize, Reason> {
    let room_bytes = frame.bytes.len() - at;
    // BIG TCP: the length of a super-segment above 64 KiB is 0 (RFC 2675).
    let ip_bytes = if ip_bytes == 0 && frame.gso_size > 0 { room_bytes } else { ip_bytes };
    if ip_bytes > room_bytes {
        return Err(sys::COUNT_MALFORMED);
    }
    ip_bytes.checked_sub(header_bytes).ok_or(sys::COUNT_MALFORMED)
}

impl Ip {
    /// Is it without IP options and extension headers?
    pub(crate) fn is_plain(&self) -> bool {
        self.tcp_at - self.at == if self.ipv6 { IPV6_BYTES } else { IPV4_BYTES }
    }

    /// Rewrites ECN field and length of the IP header in the frame's `bytes`.
    pub(crate) fn rewrite(&self, bytes: &mut [u8], ecn: u8, length: u16) {
        debug_assert!(ecn <= 3, "two bits (RFC 3168, 5)");
        let ip = &mut bytes[self.at..];
        if self.ipv6 {
            // Bits 4 and 5 of byte 1. IPv6 has no header checksum.
            ip[1] = ip[1] & !0x30 | ecn << 4;
            write_u16(ip, IPV6_LENGTH_AT, length);
            return;
        }
        // Version, header length, DSCP with ECN, and total length.
        let before = read_u32(ip, 0);
        let now = before & 0xfffc_0000 | u32::from(ecn) << 16 | u32::from(length);
        write_u32(ip, 0, now);
        let check = checksum::word_updated(read_u16(ip, IPV4_CHECK_AT), before, now);
        write_u16(ip, IPV4_CHECK_AT, check);
    }

    /// The value of the length field for `tcp_bytes` of TCP.
    pub(crate) fn length_of(&self, tcp_bytes: usize) -> u16 {
        let counted_from = if self.ipv6 { self.at + IPV6_BYTES } else { self.at };
        (self.tcp_at - counted_from + tcp_bytes) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link;
    use crate::testing::{Talk, framed};

    fn parsed(frame: &Frame) -> Result<Ip, Reason> {
        whole(frame).map(|(ip, _)| ip)
    }

    fn whole(frame: &Frame) -> Result<(Ip, Addresses), Reason> {
        parse::<false>(frame, &link::parse(&frame.bytes)?)
    }

    fn v4() -> Frame {
        framed(&Talk::v4().segment(true))
    }

    fn v6() -> Frame {
        framed(&Talk::v6().segment(true))
    }

    #[test]
    fn the_header_locates_tcp() {
        let mut frame = v4();
        frame.bytes.extend([0xa5; 6]);
        let (ip, [source, _]) = whole(&frame).expect("TCP");
        assert_eq!((ip.at, ip.tcp_at, ip.length, ip.tcp_bytes), (14, 34, 40, 20));
        assert_eq!(source, 0xffff_0a00_0002);
        let (ip, [_, destination]) = whole(&v6()).expect("TCP");
        assert_eq!((ip.at, ip.tcp_at, ip.length, ip.tcp_bytes), (14, 54, 20, 20));
        assert_eq!(destination >> 112, 0xfd00);
    }

    /// Edits bytes at offsets from the IP header's start.
    fn refused(mut frame: Frame, edits: &[(usize, u8)]) -> Option<Reason> {
        for (at, byte) in edits {
            frame.bytes[ETHERNET_BYTES + at] = *byte;
        }
        parsed(&frame).err()
    }

    #[test]
    fn other_packets_are_refused_with_their_reason() {
        assert_eq!(refused(v4(), &[(0, 0x44)]), Some(sys::COUNT_MALFORMED));
        assert_eq!(refused(v4(), &[(0, 0x65)]), Some(sys::COUNT_MALFORMED));
        assert_eq!(refused(v4(), &[(9, 17), (6, 0x20)]), Some(sys::COUNT_NOT_TCP));
        assert_eq!(refused(v4(), &[(6, 0x20)]), Some(sys::COUNT_FRAGMENT));
        assert_eq!(refused(v4(), &[(7, 1)]), Some(sys::COUNT_FRAGMENT));
        assert_eq!(refused(v4(), &[(3, 41)]), Some(sys::COUNT_MALFORMED));
        assert_eq!(refused(v4(), &[(3, 19)]), Some(sys::COUNT_MALFORMED));
        assert_eq!(refused(v6(), &[(6, 17)]), Some(sys::COUNT_NOT_TCP));
        assert_eq!(refused(v6(), &[(6, PROTOCOL_FRAGMENT)]), Some(sys::COUNT_FRAGMENT));
        assert_eq!(refused(v6(), &[(5, 0)]), Some(sys::COUNT_MALFORMED));
        // The next header is read with a length of 255 units, beyond the frame.
        let beyond = [(6, PROTOCOL_DESTINATION), (40, PROTOCOL_ROUTING), (41, 255)];
        assert_eq!(refused(v6(), &beyond), Some(sys::COUNT_MALFORMED));
    }

    #[test]
    fn big_tcp_has_length_0() {
        for (mut frame, at) in [(v4(), 2), (v6(), 4)] {
            write_u16(&mut frame.bytes, ETHERNET_BYTES + at, 0);
            assert_eq!(parsed(&frame).err(), Some(sys::COUNT_MALFORMED));
            frame.gso_size = 1;
            assert_eq!(parsed(&frame).map(|ip| (ip.length, ip.tcp_bytes)).ok(), Some((0, 20)));
        }
    }

    #[test]
    fn only_ecn_and_length_change() {
        for mut frame in [v4(), v6()] {
            let before = frame.clone();
            let ip = parsed(&frame).expect("TCP");
            ip.rewrite(&mut frame.bytes, 3, ip.length_of(28));
            frame.bytes.extend([0; 8]);
            let now = parsed(&frame).expect("TCP");
            assert_eq!((now.length, now.ecn), (ip.length + 8, 3));
            if !ip.ipv6 {
                assert_eq!(
                    checksum::compute(&[&frame.bytes[14..34]]),
                    0,
                    "the header's sum is right"
                );
            }
            now.rewrite(&mut frame.bytes, 0, ip.length);
            assert_eq!(frame.bytes[..before.bytes.len()], before.bytes);
        }
    }
}
