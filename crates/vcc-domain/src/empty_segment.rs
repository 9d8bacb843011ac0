//! Builds segments without payload that neither end has sent.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU8;

use vcc_engine::{Segment, sys};

use crate::checksum;
use crate::frame::{Direction, Frame};
use crate::ip::Ip;
use crate::options::{ALIGNED_TIMESTAMPS, Places};
use crate::parse::Parsed;
use vcc_engine::FlowKey;
use vcc_net::wire::*;

const HOP_LIMIT: u8 = 64;
/// The largest header of such a segment.
pub(crate) const BARE_TCP_MAX_BYTES: usize = TCP_BYTES + ALIGNED_TIMESTAMPS.len() + 8;
const ROW_BYTES: usize = 4;
/// Of the row with the checksum, and with no urgent pointer.
const CHECK_ROW: usize = TCP_CHECK_AT / ROW_BYTES;

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
    pub timestamps: Option<[u32; 2]>,
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
        let (tcp, tcp_bytes) = self.tcp(key);
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

    /// The segment as the engine parses it behind this IP header.
    pub(crate) fn parsed(&self, key: &FlowKey, ip: Ip, now_us: u64) -> Parsed {
        let header_bytes = ip.tcp_bytes;
        let timestamps_at = (TCP_BYTES + ALIGNED_TIMESTAMPS.len()) as u8;
        let timestamps_at = self.timestamps.and_then(|_| NonZeroU8::new(timestamps_at));
        let options = if timestamps_at.is_some() { sys::OPT_TIMESTAMPS } else { 0 };
        let [tsval, tsecr] = self.timestamps.unwrap_or_default();
        let segment = Segment {
            now_us,
            seq: self.seq,
            ack: self.ack,
            window: self.window,
            flags: self.flags as u16,
            options: options as u16,
            tsval,
            tsecr,
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

    /// Its TCP header with a full checksum, and the header's size. What is behind is zeroes.
    ///
    /// The sum is of the values: the bytes that have just been written take long to read.
    pub(crate) fn tcp(&self, key: &FlowKey) -> ([u8; BARE_TCP_MAX_BYTES], usize) {
        let raw = key.as_raw();
        let mut ports = [raw.guest_port, raw.peer_port].map(|port| u32::from(u16::from_be(port)));
        if self.direction == Direction::ToGuest {
            ports.reverse();
        }
        let (bytes, [options, tsval, tsecr]) = match self.timestamps {
            Some([tsval, tsecr]) => {
                (BARE_TCP_MAX_BYTES, [u32::from_be_bytes(ALIGNED_TIMESTAMPS), tsval, tsecr])
            }
            None => (TCP_BYTES, [0; 3]),
        };
        let offset_flags = u32::from(tcp_offset_flags(bytes, self.flags as u16));
        let mut rows = [
            ports[0] << 16 | ports[1],
            self.seq,
            self.ack,
            offset_flags << 16 | u32::from(self.window),
            0,
            options,
            tsval,
            tsecr,
        ];
        // The sum does not depend on the direction.
        let pseudo = checksum::tcp_pseudo_header(&raw.guest_addr, &raw.peer_addr, bytes);
        rows[CHECK_ROW] = u32::from(pseudo.with_rows(rows).checksum()) << 16;
        let mut tcp = [0; BARE_TCP_MAX_BYTES];
        for (place, row) in tcp.chunks_exact_mut(ROW_BYTES).zip(rows) {
            place.copy_from_slice(&row.to_be_bytes());
        }
        (tcp, bytes)
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
