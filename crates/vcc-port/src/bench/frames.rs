//! Ethernet frames of one TCP connection over IPv4, as a guest and its peer would send them.

use std::net::Ipv4Addr;

const ETHERNET: [u8; 14] = [0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1, 0x08, 0x00];
const IPV4_HEADER_BYTES: usize = 20;
const TCP_HEADER_BYTES: usize = 20;
const PROTOCOL_TCP: u8 = 6;

/// MSS 1460, SACK permitted, timestamps, window scale 7: what Linux offers.
pub(crate) const SYN_OPTIONS: [u8; 20] =
    [2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7];
/// Timestamps, on every other segment.
pub(crate) const OPTIONS: [u8; 12] = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 1];
/// Behind those, what a far end under vcc says: in its SYN-ACK, and in an ACK.
pub(crate) const ACCEPT: [u8; 8] = [253, 8, b'v', b'c', 1, 2, 0, 0];
pub(crate) const PACK_OPTIONS: [u8; 20] =
    [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 1, 172, 8, 0, 0, 1, 0, 0, 0];

#[derive(Clone, Copy)]
pub(crate) struct Endpoint {
    pub address: Ipv4Addr,
    pub port: u16,
}

pub(crate) struct Segment<'a> {
    pub from: Endpoint,
    pub to: Endpoint,
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub window: u16,
    pub options: &'a [u8],
    pub payload_bytes: usize,
}

impl Segment<'_> {
    pub(crate) fn frame(&self) -> Vec<u8> {
        let tcp = self.tcp();
        let total = (IPV4_HEADER_BYTES + tcp.len()) as u16;
        let mut ip = [0; IPV4_HEADER_BYTES];
        ip[0] = 0x45;
        ip[2..4].copy_from_slice(&total.to_be_bytes());
        ip[6] = 0x40;
        ip[8] = 64;
        ip[9] = PROTOCOL_TCP;
        ip[12..16].copy_from_slice(&self.from.address.octets());
        ip[16..20].copy_from_slice(&self.to.address.octets());
        let sum = checksum(&[&ip]);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        [&ETHERNET[..], &ip, &tcp].concat()
    }

    fn tcp(&self) -> Vec<u8> {
        let header_bytes = TCP_HEADER_BYTES + self.options.len();
        let mut tcp = vec![0; header_bytes + self.payload_bytes];
        tcp[0..2].copy_from_slice(&self.from.port.to_be_bytes());
        tcp[2..4].copy_from_slice(&self.to.port.to_be_bytes());
        tcp[4..8].copy_from_slice(&self.seq.to_be_bytes());
        tcp[8..12].copy_from_slice(&self.ack.to_be_bytes());
        tcp[12] = ((header_bytes / 4) << 4) as u8;
        tcp[13] = self.flags;
        tcp[14..16].copy_from_slice(&self.window.to_be_bytes());
        tcp[TCP_HEADER_BYTES..header_bytes].copy_from_slice(self.options);
        let length = (tcp.len() as u16).to_be_bytes();
        let pseudo = [
            &self.from.address.octets()[..],
            &self.to.address.octets(),
            &[0, PROTOCOL_TCP],
            &length,
        ]
        .concat();
        let sum = checksum(&[&pseudo, &tcp]);
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());
        tcp
    }
}

/// RFC 1071, over parts that are of even length, but for the last.
fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let mut sum: u32 =
        words.map(|word| u32::from(word[0]) << 8 | word.get(1).copied().map_or(0, u32::from)).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_of_rfc_1071() {
        let example = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(checksum(&[&example]), !0xddf2);
    }

    #[test]
    fn a_frame_checks_out() {
        let guest = Endpoint { address: Ipv4Addr::new(10, 0, 0, 1), port: 40_000 };
        let peer = Endpoint { address: Ipv4Addr::new(10, 0, 0, 2), port: 80 };
        let segment = Segment {
            from: guest,
            to: peer,
            seq: 1,
            ack: 2,
            flags: 0x10,
            window: 512,
            options: &OPTIONS,
            payload_bytes: 7,
        };
        let frame = segment.frame();
        let (ip, tcp) = frame[ETHERNET.len()..].split_at(IPV4_HEADER_BYTES);
        assert_eq!(checksum(&[ip]), 0);
        assert_eq!(usize::from(tcp[12] >> 4) * 4 + 7, tcp.len());
        let length = (tcp.len() as u16).to_be_bytes();
        let pseudo = [&ip[12..20], &[0, PROTOCOL_TCP], &length].concat();
        assert_eq!(checksum(&[&pseudo, tcp]), 0);
    }
}
