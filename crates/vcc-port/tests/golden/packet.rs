//! Builds Ethernet frames of TCP segments.

use std::net::{IpAddr, SocketAddr};

use crate::checksum;
use crate::wire::*;

const MACS: [u8; 12] = [0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1];
const HOP_LIMIT: u8 = 64;
const IPV4_ID: u16 = 0x1234;
/// Don't fragment.
const IPV4_DF: u16 = 0x4000;

/// A TCP segment with all that stands around it on the wire.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Type and control information of each VLAN tag, the outermost first.
    pub tags: Vec<(u16, u16)>,
    pub from: SocketAddr,
    pub to: SocketAddr,
    /// IPv4's TOS or IPv6's traffic class: DSCP above, ECN in the lowest two bits.
    pub traffic_class: u8,
    /// Of IPv6, 20 bits.
    pub flow_label: u32,
    /// Of IPv4, a multiple of four bytes.
    pub ip_options: Vec<u8>,
    /// Headers between IPv6 and TCP: type, and all bytes but the first, which names the next one.
    pub extensions: Vec<(u8, Vec<u8>)>,
    pub seq: u32,
    pub ack: u32,
    pub flags: u16,
    pub window: u16,
    /// A multiple of four bytes.
    pub options: Vec<u8>,
    pub payload: Vec<u8>,
    /// What Ethernet adds after a packet that is too short for it.
    pub padding: Vec<u8>,
}

impl Packet {
    /// An empty ACK.
    pub fn new(from: SocketAddr, to: SocketAddr) -> Self {
        Packet {
            tags: Vec::new(),
            from,
            to,
            traffic_class: 0,
            flow_label: 0,
            ip_options: Vec::new(),
            extensions: Vec::new(),
            seq: 0,
            ack: 0,
            flags: ACK,
            window: 0xffff,
            options: Vec::new(),
            payload: Vec::new(),
            padding: Vec::new(),
        }
    }

    /// The frame, its checksums filled in.
    pub fn frame(&self) -> Vec<u8> {
        let tcp = self.tcp();
        let (ethertype, ip) = match (self.from.ip(), self.to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                (ETHERTYPE_IPV4, self.ipv4(from.octets(), to.octets(), tcp.len()))
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                (ETHERTYPE_IPV6, self.ipv6(from.octets(), to.octets(), tcp.len()))
            }
            mixed => panic!("a segment between two families: {mixed:?}"),
        };
        let mut frame = MACS.to_vec();
        for &(tag_type, control) in &self.tags {
            frame.extend(tag_type.to_be_bytes());
            frame.extend(control.to_be_bytes());
        }
        frame.extend(ethertype.to_be_bytes());
        frame.extend([ip, tcp, self.padding.clone()].concat());
        checksum::fill(&mut frame);
        frame
    }

    fn ipv4(&self, from: [u8; 4], to: [u8; 4], tcp_bytes: usize) -> Vec<u8> {
        let header_bytes = IPV4_BYTES + self.ip_options.len();
        let mut ip = vec![0; IPV4_BYTES];
        ip[0] = 0x40 | (header_bytes / 4) as u8;
        ip[1] = self.traffic_class;
        write_u16(&mut ip, 2, (header_bytes + tcp_bytes) as u16);
        write_u16(&mut ip, 4, IPV4_ID);
        write_u16(&mut ip, 6, IPV4_DF);
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
        tcp[4..8].copy_from_slice(&self.seq.to_be_bytes());
        tcp[8..12].copy_from_slice(&self.ack.to_be_bytes());
        write_u16(&mut tcp, 12, (header_bytes as u16 / 4) << 12 | self.flags);
        write_u16(&mut tcp, 14, self.window);
        tcp.extend(&self.options);
        tcp.extend(&self.payload);
        tcp
    }
}

/// Payload in which a byte out of place shows.
pub fn payload(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at % 251) as u8).collect()
}

/// TCP options by their usual encoding.
pub mod options {
    use crate::wire::*;

    pub fn mss(bytes: u16) -> Vec<u8> {
        [&[OPTION_MSS, 4], &bytes.to_be_bytes()[..]].concat()
    }

    pub fn wscale(scale: u8) -> Vec<u8> {
        vec![OPTION_WSCALE, 3, scale]
    }

    pub fn sack_permitted() -> Vec<u8> {
        vec![OPTION_SACK_PERMITTED, 2]
    }

    pub fn timestamps(value: u32, echo: u32) -> Vec<u8> {
        [&[OPTION_TIMESTAMPS, 10], &value.to_be_bytes()[..], &echo.to_be_bytes()].concat()
    }

    /// Blocks by their edges (RFC 2018, 3).
    pub fn sack(blocks: &[(u32, u32)]) -> Vec<u8> {
        let mut option = vec![OPTION_SACK, (2 + 8 * blocks.len()) as u8];
        for (left, right) in blocks {
            option.extend(left.to_be_bytes());
            option.extend(right.to_be_bytes());
        }
        option
    }

    /// HELLO_OFFER or HELLO_ACCEPT.
    pub fn hello(what: u8) -> Vec<u8> {
        [&[OPTION_EXPERIMENT, 8], &EXPERIMENT_NAME[..], &[VERSION, what, 0, 0]].concat()
    }

    pub fn pack(ect0_bytes: u32, ce_bytes: u32) -> Vec<u8> {
        [&[OPTION_PACK, 8], &counters(ect0_bytes, ce_bytes)[..]].concat()
    }

    pub fn fack(ect0_bytes: u32, ce_bytes: u32) -> Vec<u8> {
        let head = [&[OPTION_EXPERIMENT, 12], &EXPERIMENT_NAME[..], &[VERSION, FACK]].concat();
        [head, counters(ect0_bytes, ce_bytes)].concat()
    }

    fn counters(ect0_bytes: u32, ce_bytes: u32) -> Vec<u8> {
        [ect0_bytes, ce_bytes].iter().flat_map(|bytes| bytes.to_be_bytes()[1..].to_vec()).collect()
    }

    pub fn nops(count: usize) -> Vec<u8> {
        vec![OPTION_NOP; count]
    }

    /// Put together and filled up to whole words with NOPs.
    pub fn join(parts: &[Vec<u8>]) -> Vec<u8> {
        let mut all = parts.concat();
        all.resize(all.len().next_multiple_of(4), OPTION_NOP);
        all
    }
}
