//! ICMP messages that say that a packet was too big (RFC 1191, 4; RFC 4443, 3.2).

use crate::checksum::{checksum, fill_ipv4};
use crate::headers::Headers;
use crate::wire::*;

const HOP_LIMIT: u8 = 64;
const ROUTER_V4: [u8; 4] = [192, 0, 2, 1];
const ROUTER_V6: [u8; 16] = [0xfd, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const CHECK_AT: usize = 2;

/// The frame that reports to the sender of `frame` that it is too big. Of the packet,
/// `quoted_bytes` behind the IP header are quoted.
pub fn too_big(frame: &[u8], at: &Headers, mtu_bytes: u32, quoted_bytes: usize) -> Vec<u8> {
    let packet = &frame[at.l3..at.end.min(at.l4 + quoted_bytes)];
    let head = if at.ipv6 { [2, 0, 0, 0] } else { [3, 4, 0, 0] };
    let icmp = [&head[..], &mtu_bytes.to_be_bytes(), packet].concat();
    let mut ip = if at.ipv6 {
        let [high, low] = (icmp.len() as u16).to_be_bytes();
        let first = [0x60, 0, 0, 0, high, low, PROTOCOL_ICMPV6, HOP_LIMIT];
        [&first[..], &ROUTER_V6, &packet[8..24]].concat()
    } else {
        let [high, low] = ((IPV4_BYTES + icmp.len()) as u16).to_be_bytes();
        let first = [0x45, 0, high, low, 0, 0, 0, 0, HOP_LIMIT, PROTOCOL_ICMP, 0, 0];
        [&first[..], &ROUTER_V4, &packet[12..16]].concat()
    };
    if !at.ipv6 {
        fill_ipv4(&mut ip);
    }
    let icmp_at = at.l3 + ip.len();
    let ethernet = [&frame[6..12], &frame[..6], &frame[12..at.l3]].concat();
    let mut whole = [ethernet, ip, icmp].concat();
    let check = sum(&whole, at.l3, icmp_at);
    write_u16(&mut whole, icmp_at + CHECK_AT, check);
    whole
}

/// Whether the receiver of a message accepts its checksum.
pub fn verify(frame: &[u8], l3: usize) -> bool {
    let header_bytes = if frame[l3] >> 4 == 6 { IPV6_BYTES } else { IPV4_BYTES };
    sum(frame, l3, l3 + header_bytes) == 0
}

/// ICMPv6's sum has a pseudo-header (RFC 4443, 2.3).
fn sum(frame: &[u8], l3: usize, icmp_at: usize) -> u16 {
    let icmp = &frame[icmp_at..];
    if frame[l3] >> 4 != 6 {
        return checksum(icmp);
    }
    let length = (icmp.len() as u32).to_be_bytes();
    checksum(&[&frame[l3 + 8..l3 + 40], &length, &[0, PROTOCOL_ICMPV6], icmp].concat())
}
