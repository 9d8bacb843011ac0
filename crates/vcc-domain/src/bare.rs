//! Builds segments without payload that neither end has sent.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU8;

use vcc_engine::{Segment, sys};

use crate::checksum;
use crate::frame::{Direction, Frame};
use crate::ip::Ip;
use crate::key::FlowKey;
use crate::options::{ALIGNED_TIMESTAMPS, Places};
use crate::parse::Parsed;
use crate::wire::*;

const HOP_LIMIT: u8 = 64;
/// The largest header that [`Bare::write_tcp`] writes.
pub(crate) const BARE_TCP_MAX_BYTES: usize = TCP_BYTES + ALIGNED_TIMESTAMPS.len() + 8;

/// A segment without payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bare {
    pub direction: Direction,
    pub seq: u32,
    pub ack: u32,
    /// `enum vcc_tcp_flag`.
    pub flags: u32,
    pub window: u16,
    /// TSval and TSecr.
    pub timestamps: Option<[u8; 8]>,
}

impl Bare {
    /// Its frame, as the sender might have sent it.
    pub(crate) fn frame(&self, key: &FlowKey, neighbour: &sys::vcc_neighbour) -> Frame {
        let raw = key.as_raw();
        let mut macs = [neighbour.guest_mac, neighbour.next_hop_mac];
        let mut addresses = [raw.peer_addr, raw.guest_addr];
        if self.direction == Direction::FromGuest {
            macs.reverse();
            addresses.reverse();
        }
        let [from, to] = self.ends(key);
        let mut tcp = [0; BARE_TCP_MAX_BYTES];
        let tcp_bytes = self.write_tcp(key, &mut tcp);
        let mut bytes = macs.concat();
        if let Some(vlan) = key.vlan() {
            bytes.extend(ETHERTYPE_VLAN.to_be_bytes());
            bytes.extend(vlan.to_be_bytes());
        }
        match (from.ip(), to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                bytes.extend(ETHERTYPE_IPV4.to_be_bytes());
                bytes.extend(ipv4(from.octets(), to.octets(), tcp_bytes));
            }
            _ => {
                bytes.extend(ETHERTYPE_IPV6.to_be_bytes());
                bytes.extend(ipv6(addresses, tcp_bytes));
            }
        }
        bytes.extend(&tcp[..tcp_bytes]);
        Frame::full(bytes)
    }

    /// What it says to the engine behind this IP header.
    pub(crate) fn parsed(&self, key: &FlowKey, ip: Ip, now_us: u64) -> Parsed {
        let header_bytes = ip.tcp_bytes;
        let timestamps_at = (TCP_BYTES + ALIGNED_TIMESTAMPS.len()) as u8;
        let timestamps_at = self.timestamps.and_then(|_| NonZeroU8::new(timestamps_at));
        let options = if timestamps_at.is_some() { sys::OPT_TIMESTAMPS } else { 0 };
        let segment = Segment {
            now_us,
            seq: self.seq,
            ack: self.ack,
            window: self.window,
            flags: self.flags as u16,
            options: options as u16,
            ip_ecn: ip.ecn,
            option_room_bytes: (TCP_BYTES + TCP_OPTIONS_MAX_BYTES - header_bytes) as u8,
            ..Segment::default()
        };
        let places = Places { timestamps_at, ..Places::default() };
        Parsed { key: *key, ip, segment, header_bytes, places }
    }

    /// Its sender and its receiver.
    fn ends(&self, key: &FlowKey) -> [SocketAddr; 2] {
        match self.direction {
            Direction::FromGuest => [key.guest(), key.peer()],
            Direction::ToGuest => [key.peer(), key.guest()],
        }
    }

    /// Writes its TCP header with a full checksum into zeroes; returns the header's size.
    pub(crate) fn write_tcp(&self, key: &FlowKey, tcp: &mut [u8; BARE_TCP_MAX_BYTES]) -> usize {
        let raw = key.as_raw();
        let mut ports = [raw.guest_port, raw.peer_port].map(u16::from_be);
        if self.direction == Direction::ToGuest {
            ports.reverse();
        }
        let mut bytes = TCP_BYTES;
        if let Some(both) = self.timestamps {
            tcp[bytes..bytes + 4].copy_from_slice(&ALIGNED_TIMESTAMPS);
            tcp[bytes + 4..].copy_from_slice(&both);
            bytes = BARE_TCP_MAX_BYTES;
        }
        write_u16(tcp, 0, ports[0]);
        write_u16(tcp, 2, ports[1]);
        write_u32(tcp, TCP_SEQ_AT, self.seq);
        write_u32(tcp, TCP_ACK_AT, self.ack);
        write_u16(tcp, TCP_OFFSET_FLAGS_AT, tcp_offset_flags(bytes, self.flags as u16));
        write_u16(tcp, TCP_WINDOW_AT, self.window);
        // The sum does not depend on the direction.
        let check = checksum::of_tcp(&raw.guest_addr, &raw.peer_addr, &tcp[..bytes]);
        write_u16(tcp, TCP_CHECK_AT, check);
        bytes
    }
}

fn ipv4(from: [u8; 4], to: [u8; 4], tcp_bytes: usize) -> [u8; IPV4_BYTES] {
    let mut ip = [0; IPV4_BYTES];
    ip[0] = 0x45;
    write_u16(&mut ip, 2, (IPV4_BYTES + tcp_bytes) as u16);
    write_u16(&mut ip, 6, IPV4_DONT_FRAGMENT);
    ip[8] = HOP_LIMIT;
    ip[9] = PROTOCOL_TCP;
    ip[12..16].copy_from_slice(&from);
    ip[16..20].copy_from_slice(&to);
    let check = checksum::of(&[&ip]);
    write_u16(&mut ip, IPV4_CHECK_AT, check);
    ip
}

fn ipv6([from, to]: [[u8; 16]; 2], tcp_bytes: usize) -> [u8; IPV6_BYTES] {
    let mut ip = [0; IPV6_BYTES];
    ip[0] = 0x60;
    write_u16(&mut ip, 4, tcp_bytes as u16);
    ip[6] = PROTOCOL_TCP;
    ip[7] = HOP_LIMIT;
    ip[8..24].copy_from_slice(&from);
    ip[24..40].copy_from_slice(&to);
    ip
}
