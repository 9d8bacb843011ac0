//! The fields of an Ethernet frame that the fabric reads, and the CE mark, the only one it changes.

use super::HostId;
use vcc_frames::Headers;

const ETHERNET_HEADER_BYTES: usize = 14;
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const ETHERTYPE_IPV6: [u8; 2] = [0x86, 0xdd];
const IPV4_HEADER_BYTES: usize = 20;
const IPV6_HEADER_BYTES: usize = 40;
/// In the byte of the flags.
const DONT_FRAGMENT: u8 = 0x40;
const IPV4_CHECKSUM: usize = ETHERNET_HEADER_BYTES + 10;

/// Locally administered (bit 1 of the first byte), then "vcc"; the host's number follows.
const MAC_PREFIX: [u8; 4] = [0x02, 0x76, 0x63, 0x63];

pub fn mac_of(host: HostId) -> [u8; 6] {
    let [high, low] = (host as u16).to_be_bytes();
    let [a, b, c, d] = MAC_PREFIX;
    [a, b, c, d, high, low]
}

/// The host that a frame is addressed to; none for broadcast, multicast and strangers.
pub fn destination(frame: &[u8]) -> Option<HostId> {
    host_of(frame.get(..6)?)
}

pub fn source(frame: &[u8]) -> Option<HostId> {
    host_of(frame.get(6..12)?)
}

fn host_of(mac: &[u8]) -> Option<HostId> {
    (mac[..4] == MAC_PREFIX).then(|| usize::from(u16::from_be_bytes([mac[4], mac[5]])))
}

/// An IPv4 frame from one host to another with nothing in it: as much of the headers as the
/// fabric reads, and `ecn` in the ECN field. Fills `frame` to `bytes`.
pub fn write_bare(frame: &mut Vec<u8>, from: HostId, to: HostId, ecn: u8, bytes: usize) {
    frame.clear();
    frame.resize(bytes.max(ETHERNET_HEADER_BYTES + IPV4_HEADER_BYTES), 0);
    address(frame, from, to);
    frame[12..14].copy_from_slice(&ETHERTYPE_IPV4);
    frame[14] = 0x45;
    frame[15] = ecn;
}

pub fn address(frame: &mut [u8], from: HostId, to: HostId) {
    frame[..6].copy_from_slice(&mac_of(to));
    frame[6..12].copy_from_slice(&mac_of(from));
}

/// The ECN field of the IP header (RFC 3168, 5); none for what is not IP.
fn ecn_field(frame: &[u8]) -> Option<u8> {
    let ip_bytes = frame.len().checked_sub(ETHERNET_HEADER_BYTES)?;
    match [frame[12], frame[13]] {
        ETHERTYPE_IPV4 if ip_bytes >= IPV4_HEADER_BYTES => Some(frame[15] & 0b11),
        // The traffic class straddles the first two bytes (RFC 8200, 3).
        ETHERTYPE_IPV6 if ip_bytes >= IPV6_HEADER_BYTES => Some((frame[15] >> 4) & 0b11),
        _ => None,
    }
}

/// Whether a queue may mark the frame instead of dropping it: ECT(0), ECT(1) or CE already.
pub fn is_ecn_capable(frame: &[u8]) -> bool {
    ecn_field(frame).is_some_and(|ecn| ecn != 0)
}

/// Where the headers of an IP packet are that no router may fragment (RFC 791, 2.3; RFC 8200, 5).
pub fn unfragmentable(frame: &[u8]) -> Option<Headers> {
    let l3 = ETHERNET_HEADER_BYTES;
    let ip = frame.get(l3..)?;
    let word = |at: usize| usize::from(u16::from_be_bytes([ip[at], ip[at + 1]]));
    let (ipv6, header_bytes, bytes) = match [frame[12], frame[13]] {
        ETHERTYPE_IPV4 if ip.len() >= IPV4_HEADER_BYTES && ip[6] & DONT_FRAGMENT != 0 => {
            (false, usize::from(ip[0] & 15) * 4, word(2))
        }
        ETHERTYPE_IPV6 if ip.len() >= IPV6_HEADER_BYTES => {
            (true, IPV6_HEADER_BYTES, IPV6_HEADER_BYTES + word(4))
        }
        _ => return None,
    };
    let is_sound = (header_bytes..=ip.len()).contains(&bytes);
    is_sound.then_some(Headers { ipv6, l3, l4: l3 + header_bytes, end: l3 + bytes })
}

/// Sets CE on an ECN-capable frame; others stay as they are.
pub fn mark_ce(frame: &mut [u8]) {
    match ecn_field(frame) {
        None | Some(0 | 0b11) => {}
        Some(_) if [frame[12], frame[13]] == ETHERTYPE_IPV6 => frame[15] |= 0b11 << 4,
        Some(_) => {
            let before = u16::from_be_bytes([frame[14], frame[15]]);
            frame[15] |= 0b11;
            let after = u16::from_be_bytes([frame[14], frame[15]]);
            let sum = u16::from_be_bytes([frame[IPV4_CHECKSUM], frame[IPV4_CHECKSUM + 1]]);
            let sum = update_checksum(sum, before, after).to_be_bytes();
            frame[IPV4_CHECKSUM..IPV4_CHECKSUM + 2].copy_from_slice(&sum);
        }
    }
}

/// Incremental update of an Internet checksum (RFC 1624, 3: HC' = ~(~HC + ~m + m')). It is not that
/// of `vcc-domain`: the fabric shares no code with what the lab measures.
fn update_checksum(checksum: u16, before: u16, after: u16) -> u16 {
    let mut sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use vcc_frames::checksum::fill_ipv4;

    use super::*;

    fn ipv4(tos: u8, ttl: u8) -> Vec<u8> {
        let mut frame = vec![0; ETHERNET_HEADER_BYTES + IPV4_HEADER_BYTES];
        frame[..6].copy_from_slice(&mac_of(300));
        frame[12..14].copy_from_slice(&ETHERTYPE_IPV4);
        frame[14] = 0x45;
        frame[15] = tos;
        frame[22] = ttl;
        frame[23] = 6;
        frame[26..34].copy_from_slice(&[10, 77, 0, 1, 10, 77, 0, 2]);
        fill_ipv4(&mut frame[14..]);
        frame
    }

    #[test]
    fn ipv4_mark_keeps_the_checksum_right() {
        for tos in 0..=255 {
            for ttl in [1, 63, 64, 255] {
                let mut frame = ipv4(tos, ttl);
                let capable = is_ecn_capable(&frame);
                assert_eq!(capable, tos & 3 != 0);
                mark_ce(&mut frame);
                assert_eq!(frame[15], if capable { tos | 3 } else { tos });
                let marked = frame.clone();
                fill_ipv4(&mut frame[14..]);
                assert_eq!(marked, frame, "tos {tos} ttl {ttl}");
            }
        }
    }

    #[test]
    fn ipv6_mark_changes_two_bits() {
        for class in 0..=255_u8 {
            let mut frame = vec![0; ETHERNET_HEADER_BYTES + IPV6_HEADER_BYTES];
            frame[12..14].copy_from_slice(&ETHERTYPE_IPV6);
            frame[14] = 0x60 | class >> 4;
            frame[15] = class << 4 | 0x0a;
            let before = frame.clone();
            assert_eq!(is_ecn_capable(&frame), class & 3 != 0);
            mark_ce(&mut frame);
            let marked = if class & 3 == 0 { class } else { class | 3 };
            assert_eq!(frame[15], marked << 4 | 0x0a);
            assert_eq!(frame[14], before[14]);
            assert_eq!(frame[16..], before[16..]);
        }
    }

    #[test]
    fn other_frames_are_left_alone() {
        let mut arp = vec![0; 60];
        arp[12..14].copy_from_slice(&[0x08, 0x06]);
        arp[15] = 2;
        let before = arp.clone();
        mark_ce(&mut arp);
        assert_eq!(arp, before);
        assert!(!is_ecn_capable(&[0; 13]));
        let mut short = ipv4(2, 64);
        short.truncate(20);
        assert!(!is_ecn_capable(&short));
    }

    #[test]
    fn addresses_name_hosts() {
        assert_eq!(destination(&ipv4(0, 64)), Some(300));
        assert_eq!(destination(&[0xff; 60]), None);
        assert_eq!(destination(&[0x02, 0x76]), None);
    }
}
