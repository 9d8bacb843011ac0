//! A TCP segment with its headers, as a frame.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::checksum;
use crate::headers::Headers;
use crate::wire::*;

/// Destination and source, both locally administered.
pub const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]];
const HOP_LIMIT: u8 = 64;
const IPV4_ID: u16 = 0x1234;
const IPV4_DONT_FRAGMENT: u16 = 0x4000;

/// A TCP segment and all headers in front of it.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Destination and source.
    pub macs: [[u8; 6]; 2],
    /// Type and control information of each VLAN tag, the outermost first.
    pub tags: Vec<(u16, u16)>,
    pub from: SocketAddr,
    pub to: SocketAddr,
    /// IPv4's TOS or IPv6's traffic class: DSCP, and ECN in the lowest two bits.
    pub traffic_class: u8,
    /// IPv6 only, 20 bits.
    pub flow_label: u32,
    /// IPv4 only.
    pub ipv4_id: u16,
    /// IPv4 only; a multiple of four bytes.
    pub ip_options: Vec<u8>,
    /// Extension headers between IPv6 and TCP: type, and all bytes but the first, which is the type
    /// of the next header.
    pub extensions: Vec<(u8, Vec<u8>)>,
    pub seq: u32,
    pub ack: u32,
    pub flags: u16,
    pub window: u16,
    /// The urgent pointer, which is valid only with URG.
    pub urgent: u16,
    /// A multiple of four bytes.
    pub options: Vec<u8>,
    pub payload: Vec<u8>,
    /// Ethernet's padding behind a packet that is shorter than the least frame.
    pub padding: Vec<u8>,
}

impl Packet {
    /// An empty ACK.
    pub fn new(from: SocketAddr, to: SocketAddr) -> Self {
        Packet {
            macs: MACS,
            tags: Vec::new(),
            from,
            to,
            traffic_class: 0,
            flow_label: 0,
            ipv4_id: IPV4_ID,
            ip_options: Vec::new(),
            extensions: Vec::new(),
            seq: 0,
            ack: 0,
            flags: ACK,
            window: 0xffff,
            urgent: 0,
            options: Vec::new(),
            payload: Vec::new(),
            padding: Vec::new(),
        }
    }

    /// A SYN without options.
    pub fn syn(from: SocketAddr, to: SocketAddr) -> Self {
        Packet { flags: SYN, ..Self::new(from, to) }
    }

    /// The TCP segment in an IPv4 frame without a VLAN tag. None for any other frame, a fragment, or
    /// lengths that contradict each other.
    pub fn read_ipv4(frame: &[u8]) -> Option<Self> {
        let ip = frame.get(ETHERNET_BYTES..)?;
        let header_bytes = usize::from(ip.first()? & 15) * 4;
        let has_headers = header_bytes >= IPV4_BYTES && ip.len() >= header_bytes + TCP_BYTES;
        let is_tcp = has_headers
            && read_u16(frame, ETHERNET_BYTES - 2) == ETHERTYPE_IPV4
            && ip[9] == PROTOCOL_TCP
            && read_u16(ip, 6) & !IPV4_DONT_FRAGMENT == 0;
        let ip = is_tcp.then(|| ip.get(..usize::from(read_u16(ip, 2)))).flatten()?;
        let tcp = ip.get(header_bytes..).filter(|tcp| tcp.len() >= TCP_BYTES)?;
        let offset = usize::from(tcp[12] >> 4) * 4;
        let address = |at: usize| Ipv4Addr::from(read_u32(ip, at));
        let mac = |at: usize| frame[at..at + 6].try_into().ok();
        Some(Packet {
            macs: [mac(0)?, mac(6)?],
            traffic_class: ip[1],
            ipv4_id: read_u16(ip, 4),
            ip_options: ip[IPV4_BYTES..header_bytes].to_vec(),
            seq: read_u32(tcp, 4),
            ack: read_u32(tcp, 8),
            flags: read_u16(tcp, 12) & ALL_FLAGS,
            window: read_u16(tcp, 14),
            urgent: read_u16(tcp, TCP_URGENT_AT),
            options: tcp.get(TCP_BYTES..offset)?.to_vec(),
            payload: tcp[offset..].to_vec(),
            ..Packet::new(
                (address(12), read_u16(tcp, 0)).into(),
                (address(16), read_u16(tcp, 2)).into(),
            )
        })
    }

    pub fn headers(&self) -> Headers {
        let ipv6 = self.from.is_ipv6();
        let l3 = ETHERNET_BYTES + TAG_BYTES * self.tags.len();
        let extensions = self.extensions.iter().map(|(_, rest)| 1 + rest.len());
        let l4 = l3
            + match ipv6 {
                true => IPV6_BYTES + extensions.sum::<usize>(),
                false => IPV4_BYTES + self.ip_options.len(),
            };
        let end = l4 + TCP_BYTES + self.options.len() + self.payload.len();
        Headers { ipv6, l3, l4, end }
    }

    /// The frame, with full checksums.
    pub fn frame(&self) -> Vec<u8> {
        let tcp = self.tcp();
        let (ethertype, ip) = match (self.from.ip(), self.to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                (ETHERTYPE_IPV4, self.ipv4(from.octets(), to.octets(), tcp.len()))
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                (ETHERTYPE_IPV6, self.ipv6(from.octets(), to.octets(), tcp.len()))
            }
            mixed => panic!("a segment between two address families: {mixed:?}"),
        };
        let mut frame = self.macs.concat();
        for &(tag_type, control) in &self.tags {
            frame.extend(tag_type.to_be_bytes());
            frame.extend(control.to_be_bytes());
        }
        frame.extend(ethertype.to_be_bytes());
        frame.extend([ip, tcp, self.padding.clone()].concat());
        checksum::fill(&mut frame, &self.headers());
        frame
    }

    fn ipv4(&self, from: [u8; 4], to: [u8; 4], tcp_bytes: usize) -> Vec<u8> {
        let header_bytes = IPV4_BYTES + self.ip_options.len();
        let mut ip = vec![0; IPV4_BYTES];
        ip[0] = 0x40 | (header_bytes / 4) as u8;
        ip[1] = self.traffic_class;
        write_u16(&mut ip, 2, (header_bytes + tcp_bytes) as u16);
        write_u16(&mut ip, 4, self.ipv4_id);
        write_u16(&mut ip, 6, IPV4_DONT_FRAGMENT);
        ip[8] = HOP_LIMIT;
        ip[9] = PROTOCOL_TCP;
        ip[12..16].copy_from_slice(&from);
        ip[16..20].copy_from_slice(&to);
        ip.extend(&self.ip_options);
        ip
    }

    fn ipv6(&self, from: [u8; 16], to: [u8; 16], tcp_bytes: usize) -> Vec<u8> {
        let word = 6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label;
        let mut kinds: Vec<u8> = self.extensions.iter().map(|(kind, _)| *kind).collect();
        kinds.push(PROTOCOL_TCP);
        let mut extensions = Vec::new();
        for ((_, rest), next) in self.extensions.iter().zip(&kinds[1..]) {
            extensions.push(*next);
            extensions.extend(rest);
        }
        let mut ip = word.to_be_bytes().to_vec();
        ip.extend(((extensions.len() + tcp_bytes) as u16).to_be_bytes());
        ip.extend([kinds[0], HOP_LIMIT]);
        ip.extend(from);
        ip.extend(to);
        ip.extend(extensions);
        ip
    }

    fn tcp(&self) -> Vec<u8> {
        let header_bytes = TCP_BYTES + self.options.len();
        let mut tcp = vec![0; TCP_BYTES];
        write_u16(&mut tcp, 0, self.from.port());
        write_u16(&mut tcp, 2, self.to.port());
        write_u32(&mut tcp, 4, self.seq);
        write_u32(&mut tcp, 8, self.ack);
        write_u16(&mut tcp, 12, (header_bytes as u16 / 4) << 12 | self.flags);
        write_u16(&mut tcp, 14, self.window);
        write_u16(&mut tcp, TCP_URGENT_AT, self.urgent);
        tcp.extend(&self.options);
        tcp.extend(&self.payload);
        tcp
    }
}

/// Payload in which a misplaced byte shows.
pub fn payload(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at % 251) as u8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options;

    #[test]
    fn headers_are_where_they_are_said_to_be_and_checksums_are_right() {
        for (from, to) in [("10.0.0.1:40000", "10.0.0.2:80"), ("[fd00::1]:40000", "[fd00::2]:80")] {
            let [from, to]: [SocketAddr; 2] = [from, to].map(|end| end.parse().expect("an end"));
            for tags in [vec![], vec![(ETHERTYPE_VLAN, 7)]] {
                let packet = Packet {
                    tags,
                    seq: 0x0102_0304,
                    ip_options: vec![1; 8],
                    extensions: vec![(PROTOCOL_DESTINATION, vec![0, 1, 4, 0, 0, 0, 0])],
                    options: options::join(&[options::timestamps(1, 0)]),
                    payload: payload(7),
                    padding: vec![0xa5; 3],
                    ..Packet::new(from, to)
                };
                let (frame, at) = (packet.frame(), packet.headers());
                assert_eq!(read_u16(&frame, at.l4), 40_000);
                assert_eq!(read_u32(&frame, at.l4 + 4), 0x0102_0304);
                assert_eq!(usize::from(frame[at.l4 + 12] >> 4) * 4 + 7, at.end - at.l4);
                assert_eq!(frame[at.end..], [0xa5; 3]);
                assert!(checksum::verify(&frame, &at), "{packet:?}");
                let mut partial = frame.clone();
                checksum::make_partial(&mut partial, &at);
                assert_ne!(partial, frame);
                checksum::complete(&mut partial, &at);
                assert_eq!(partial, frame);
            }
        }
    }

    #[test]
    fn a_frame_reads_as_the_segment_that_it_was_written_from() {
        let packet = Packet {
            traffic_class: ECT_0,
            ipv4_id: 7,
            seq: 0xffff_fff0,
            ack: 9,
            flags: ACK | PSH | CWR,
            window: 77,
            urgent: 3,
            options: options::join(&[options::timestamps(1, 2)]),
            payload: payload(5),
            ..Packet::new(([10, 0, 0, 1], 40_000).into(), ([10, 0, 0, 2], 80).into())
        };
        let frame = packet.frame();
        let padded = [&frame[..], &[0xa5; 3]].concat();
        for frame in [&frame, &padded] {
            let read = Packet::read_ipv4(frame).expect("a segment");
            assert_eq!(format!("{read:?}"), format!("{packet:?}"));
        }
        for short in 0..frame.len() {
            assert!(Packet::read_ipv4(&frame[..short]).is_none(), "{short}");
        }
        let mut fragment = frame;
        fragment[ETHERNET_BYTES + 6] = 0x20;
        assert!(Packet::read_ipv4(&fragment).is_none());
    }
}
