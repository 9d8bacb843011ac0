//! Builds segments without payload that neither end has sent.

use std::net::IpAddr;

use vcc_engine::sys;

use crate::checksum;
use crate::frame::{Direction, Frame};
use crate::key::FlowKey;
use crate::options::{KIND_NOP, KIND_TIMESTAMPS};
use crate::wire::*;

const HOP_LIMIT: u8 = 64;
const IPV4_DONT_FRAGMENT: u16 = 0x4000;

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
        let (mut macs, mut ends) =
            ([neighbour.guest_mac, neighbour.next_hop_mac], [key.peer(), key.guest()]);
        let mut addresses = [raw.peer_addr, raw.guest_addr];
        if self.direction == Direction::FromGuest {
            macs.reverse();
            ends.reverse();
            addresses.reverse();
        }
        let mut bytes = macs.concat();
        if let Some(vlan) = key.vlan() {
            bytes.extend(ETHERTYPE_VLAN.to_be_bytes());
            bytes.extend(vlan.to_be_bytes());
        }
        let [from, to] = ends;
        let mut tcp = self.tcp(from.port(), to.port());
        let check = checksum::of_tcp(&addresses[0], &addresses[1], &tcp);
        write_u16(&mut tcp, TCP_CHECK_AT, check);
        match (from.ip(), to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                bytes.extend(ETHERTYPE_IPV4.to_be_bytes());
                bytes.extend(ipv4(from.octets(), to.octets(), tcp.len()));
            }
            _ => {
                bytes.extend(ETHERTYPE_IPV6.to_be_bytes());
                bytes.extend(ipv6(addresses, tcp.len()));
            }
        }
        bytes.extend(tcp);
        Frame::full(bytes)
    }

    fn tcp(&self, from_port: u16, to_port: u16) -> Vec<u8> {
        let mut tcp = vec![0; TCP_BYTES];
        if let Some(both) = self.timestamps {
            tcp.extend([KIND_NOP, KIND_NOP, KIND_TIMESTAMPS, 10]);
            tcp.extend(both);
        }
        write_u16(&mut tcp, 0, from_port);
        write_u16(&mut tcp, 2, to_port);
        write_u32(&mut tcp, TCP_SEQ_AT, self.seq);
        write_u32(&mut tcp, TCP_ACK_AT, self.ack);
        let word = tcp_offset_flags(tcp.len(), self.flags as u16);
        write_u16(&mut tcp, TCP_OFFSET_FLAGS_AT, word);
        write_u16(&mut tcp, TCP_WINDOW_AT, self.window);
        tcp
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
