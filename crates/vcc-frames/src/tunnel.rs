//! Frames inside VXLAN (RFC 7348), Geneve (RFC 8926) and GRE (RFC 2784, RFC 2890).

use std::net::IpAddr;

use crate::checksum;
use crate::packet::MACS;
use crate::wire::*;

const UDP_BYTES: usize = 8;
const GENEVE_PORT: u16 = 6081;
const GRE_CHECKSUM: u16 = 0x8000;
const GRE_KEY: u16 = 0x2000;
const GRE_SEQUENCE: u16 = 0x1000;
/// Dynamic, as an encapsulator computes it from a hash of what is inside.
const SOURCE_PORT: u16 = 50_505;

#[derive(Clone, Debug)]
pub enum TunnelHeader {
    Vxlan {
        port: u16,
        vni: u32,
    },
    Geneve {
        vni: u32,
        /// A multiple of four bytes.
        options: Vec<u8>,
        /// An Ethernet frame is inside, or an IP packet.
        ethernet: bool,
    },
    Gre {
        key: Option<u32>,
        sequence: Option<u32>,
        ethernet: bool,
    },
}

/// One end of a tunnel.
#[derive(Clone, Debug)]
pub struct Tunnel {
    pub header: TunnelHeader,
    pub from: IpAddr,
    pub to: IpAddr,
    /// Of UDP or GRE.
    pub checksum: bool,
    /// The option of RFC 2473, 4.1.1, which Linux adds to GRE over IPv6.
    pub limit: bool,
}

/// What a frame has inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// As an Ethernet frame, in any case, with the VLAN tag of the outer one.
    pub frame: Vec<u8>,
    /// The outer ECN field.
    pub ecn: u8,
    pub has_checksum: bool,
}

impl Tunnel {
    /// The other end.
    pub fn reversed(&self) -> Self {
        Self { from: self.to, to: self.from, ..self.clone() }
    }

    fn is_udp(&self) -> bool {
        !matches!(self.header, TunnelHeader::Gre { .. })
    }

    fn has_ethernet(&self) -> bool {
        match self.header {
            TunnelHeader::Vxlan { .. } => true,
            TunnelHeader::Geneve { ethernet, .. } | TunnelHeader::Gre { ethernet, .. } => ethernet,
        }
    }

    /// Puts a frame inside. A VLAN tag becomes the outer frame's.
    pub fn wrap(&self, frame: &[u8], ecn: u8) -> Vec<u8> {
        let (tag, ethertype, at) = split(frame);
        let mut inside = Vec::new();
        if self.has_ethernet() {
            inside.extend(&frame[..12]);
            inside.extend(ethertype.to_be_bytes());
        }
        inside.extend(&frame[at..]);
        let kind = if self.has_ethernet() { ETHERTYPE_ETHERNET } else { ethertype };
        let mut l4 = self.l4(kind, inside.len());
        l4.extend(inside);
        let mut outer = self.outer_ip(l4.len(), ecn);
        if self.checksum {
            let check = match self.is_udp() {
                true => match checksum::udp(self.addresses(&outer), &l4) {
                    0 => 0xffff,
                    check => check,
                },
                false => checksum::checksum(&l4),
            };
            let at = self.check_at();
            write_u16(&mut l4, at, check);
        }
        let mut out = [MACS[0], MACS[1]].concat();
        out.extend(tag);
        let ethertype = if self.from.is_ipv6() { ETHERTYPE_IPV6 } else { ETHERTYPE_IPV4 };
        out.extend(ethertype.to_be_bytes());
        out.append(&mut outer);
        out.extend(l4);
        out
    }

    fn check_at(&self) -> usize {
        if self.is_udp() { 6 } else { 4 }
    }

    fn addresses<'a>(&self, ip: &'a [u8]) -> &'a [u8] {
        if self.from.is_ipv6() { &ip[8..40] } else { &ip[12..20] }
    }

    fn l4(&self, kind: u16, inside_bytes: usize) -> Vec<u8> {
        let (port, rest) = match &self.header {
            TunnelHeader::Vxlan { port, vni } => {
                (*port, [vec![0x08, 0, 0, 0], (vni << 8).to_be_bytes().to_vec()].concat())
            }
            TunnelHeader::Geneve { vni, options, .. } => {
                let mut header = vec![(options.len() / 4) as u8, 0];
                header.extend(kind.to_be_bytes());
                header.extend((vni << 8).to_be_bytes());
                header.extend(options);
                (GENEVE_PORT, header)
            }
            TunnelHeader::Gre { key, sequence, .. } => return self.gre(kind, *key, *sequence),
        };
        let length = (UDP_BYTES + rest.len() + inside_bytes) as u16;
        let mut header: Vec<u8> =
            [SOURCE_PORT, port, length, 0].iter().flat_map(|half| half.to_be_bytes()).collect();
        header.extend(rest);
        header
    }

    fn gre(&self, kind: u16, key: Option<u32>, sequence: Option<u32>) -> Vec<u8> {
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        let flags = flag(self.checksum, GRE_CHECKSUM)
            | flag(key.is_some(), GRE_KEY)
            | flag(sequence.is_some(), GRE_SEQUENCE);
        let mut header = [flags.to_be_bytes(), kind.to_be_bytes()].concat();
        header.extend(self.checksum.then_some([0; 4]).into_iter().flatten());
        for field in [key, sequence].into_iter().flatten() {
            header.extend(field.to_be_bytes());
        }
        header
    }

    fn outer_ip(&self, l4_bytes: usize, ecn: u8) -> Vec<u8> {
        let protocol = if self.is_udp() { PROTOCOL_UDP } else { PROTOCOL_GRE };
        match (self.from, self.to) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let length = ((IPV4_BYTES + l4_bytes) as u16).to_be_bytes();
                let mut ip =
                    vec![0x45, ecn, length[0], length[1], 0, 7, 0x40, 0, 64, protocol, 0, 0];
                ip.extend(from.octets());
                ip.extend(to.octets());
                checksum::fill_ipv4(&mut ip);
                ip
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let option =
                    if self.limit { vec![protocol, 0, 4, 1, 4, 1, 1, 0] } else { Vec::new() };
                let next = if self.limit { PROTOCOL_DESTINATION } else { protocol };
                let length = ((option.len() + l4_bytes) as u16).to_be_bytes();
                let mut ip = vec![0x60, ecn << 4, 0, 0, length[0], length[1], next, 64];
                ip.extend(from.octets());
                ip.extend(to.octets());
                ip.extend(option);
                ip
            }
            _ => panic!("ends of two families"),
        }
    }

    /// Takes a frame of this tunnel apart. None if a length or a checksum outside is wrong.
    pub fn open(&self, frame: &[u8]) -> Option<Opened> {
        let (tag, ethertype, l3) = split(frame);
        let ipv6 = ethertype == ETHERTYPE_IPV6;
        let header_bytes = if ipv6 { IPV6_BYTES } else { IPV4_BYTES };
        let ip = frame.get(l3..)?;
        let ecn = if ipv6 { ip[1] >> 4 & 3 } else { ip[1] & 3 };
        let length = match ipv6 {
            true => IPV6_BYTES + usize::from(read_u16(ip, 4)),
            false => usize::from(read_u16(ip, 2)),
        };
        if length != ip.len() || (!ipv6 && checksum::checksum(&ip[..header_bytes]) != 0) {
            return None;
        }
        let l4 = &ip[header_bytes + if ipv6 && self.limit { 8 } else { 0 }..];
        let check = self.is_udp() || self.checksum;
        let has_checksum = check && read_u16(l4, self.check_at()) != 0;
        let is_right = match self.is_udp() {
            true => {
                let sum = checksum::udp(self.addresses(ip), l4);
                usize::from(read_u16(l4, 4)) == l4.len() && (!has_checksum || sum == 0)
            }
            false => !self.checksum || checksum::checksum(l4) == 0,
        };
        let (kind, inside) = match &self.header {
            TunnelHeader::Vxlan { .. } => (ETHERTYPE_ETHERNET, &l4[UDP_BYTES + 8..]),
            TunnelHeader::Geneve { options, .. } => {
                (read_u16(l4, 10), &l4[UDP_BYTES + 8 + options.len()..])
            }
            TunnelHeader::Gre { key, sequence, .. } => {
                let fields = [self.checksum, key.is_some(), sequence.is_some()];
                let bytes = 4 + 4 * fields.into_iter().filter(|is_there| *is_there).count();
                (read_u16(l4, 2), &l4[bytes..])
            }
        };
        let mut frame = match kind {
            ETHERTYPE_ETHERNET => inside[..12].to_vec(),
            _ => MACS.concat(),
        };
        frame.extend(tag);
        match kind {
            ETHERTYPE_ETHERNET => frame.extend(&inside[12..]),
            _ => {
                frame.extend(kind.to_be_bytes());
                frame.extend(inside);
            }
        }
        is_right.then_some(Opened { frame, ecn, has_checksum })
    }
}

/// A frame's VLAN tag, the type of what is behind it, and where that begins.
fn split(frame: &[u8]) -> (&[u8], u16, usize) {
    let tag_bytes = if read_u16(frame, 12) == ETHERTYPE_VLAN { TAG_BYTES } else { 0 };
    let at = 12 + tag_bytes;
    (&frame[12..at], read_u16(frame, at), at + 2)
}
