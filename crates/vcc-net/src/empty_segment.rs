//! Builds TCP segments without payload that neither end has sent.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::checksum;
use crate::wire::*;

const HOP_LIMIT: u8 = 64;
/// NOP, NOP, and kind and length of the timestamps option (RFC 7323, 3.2 and appendix A).
const ALIGNED_TIMESTAMPS: [u8; 4] = [1, 1, 8, 10];
/// The largest header of such a segment.
pub const EMPTY_TCP_MAX_BYTES: usize = TCP_BYTES + ALIGNED_TIMESTAMPS.len() + 8;
const ROW_BYTES: usize = 4;
/// Of the row with the checksum, and with no urgent pointer.
const CHECK_ROW: usize = TCP_CHECK_AT / ROW_BYTES;

/// A segment without payload. Of each pair, the sender's is first.
#[derive(Clone, Copy, Debug)]
pub struct EmptySegment {
    /// IPv6, or IPv4-mapped.
    pub addresses: [[u8; 16]; 2],
    pub ports: [u16; 2],
    pub seq: u32,
    pub ack: u32,
    pub flags: u16,
    pub window: u16,
    /// TSval and TSecr.
    pub timestamps: Option<[u32; 2]>,
}

impl EmptySegment {
    /// Its frame, as the sender might have sent it. `macs`: the sender's and the receiver's.
    pub fn frame(&self, [source, destination]: [[u8; MAC_BYTES]; 2], vlan: Option<u16>) -> Vec<u8> {
        let (tcp, tcp_bytes) = self.tcp();
        let mut bytes = [destination, source].concat();
        if let Some(vlan) = vlan {
            bytes.extend(ETHERTYPE_VLAN.to_be_bytes());
            bytes.extend(vlan.to_be_bytes());
        }
        match self.addresses.map(|address| Ipv6Addr::from(address).to_ipv4_mapped()) {
            [Some(from), Some(to)] => {
                bytes.extend(ETHERTYPE_IPV4.to_be_bytes());
                bytes.extend(ipv4(from, to, tcp_bytes));
            }
            _ => {
                bytes.extend(ETHERTYPE_IPV6.to_be_bytes());
                bytes.extend(ipv6(self.addresses, tcp_bytes));
            }
        }
        bytes.extend(&tcp[..tcp_bytes]);
        bytes
    }

    /// Its TCP header with a full checksum, and the header's size. What is behind is zeroes.
    ///
    /// The sum is of the values: the bytes that have just been written take long to read.
    #[inline]
    pub fn tcp(&self) -> ([u8; EMPTY_TCP_MAX_BYTES], usize) {
        let [from, to] = self.ports.map(u32::from);
        let (bytes, [options, tsval, tsecr]) = match self.timestamps {
            Some([tsval, tsecr]) => {
                (EMPTY_TCP_MAX_BYTES, [u32::from_be_bytes(ALIGNED_TIMESTAMPS), tsval, tsecr])
            }
            None => (TCP_BYTES, [0; 3]),
        };
        let offset_flags = u32::from(tcp_offset_flags(bytes, self.flags));
        let mut rows = [
            from << 16 | to,
            self.seq,
            self.ack,
            offset_flags << 16 | u32::from(self.window),
            0,
            options,
            tsval,
            tsecr,
        ];
        let pseudo = checksum::tcp_pseudo_header(&self.addresses[0], &self.addresses[1], bytes);
        rows[CHECK_ROW] = u32::from(pseudo.with_rows(rows).checksum()) << 16;
        let mut tcp = [0; EMPTY_TCP_MAX_BYTES];
        for (place, row) in tcp.chunks_exact_mut(ROW_BYTES).zip(rows) {
            place.copy_from_slice(&row.to_be_bytes());
        }
        (tcp, bytes)
    }
}

fn ipv4(from: Ipv4Addr, to: Ipv4Addr, tcp_bytes: usize) -> [u8; IPV4_BYTES] {
    let mut ip = [0; IPV4_BYTES];
    ip[0] = 0x45;
    write_u16(&mut ip, 2, (IPV4_BYTES + tcp_bytes) as u16);
    write_u16(&mut ip, 6, IPV4_DONT_FRAGMENT);
    ip[8] = HOP_LIMIT;
    ip[9] = PROTOCOL_TCP;
    ip[IPV4_SOURCE_AT..][..4].copy_from_slice(&from.octets());
    ip[IPV4_DESTINATION_AT..][..4].copy_from_slice(&to.octets());
    let check = checksum::compute(&[&ip]);
    write_u16(&mut ip, IPV4_CHECK_AT, check);
    ip
}

fn ipv6([from, to]: [[u8; 16]; 2], tcp_bytes: usize) -> [u8; IPV6_BYTES] {
    let mut ip = [0; IPV6_BYTES];
    ip[0] = 0x60;
    write_u16(&mut ip, 4, tcp_bytes as u16);
    ip[6] = PROTOCOL_TCP;
    ip[7] = HOP_LIMIT;
    ip[IPV6_SOURCE_AT..][..16].copy_from_slice(&from);
    ip[IPV6_DESTINATION_AT..][..16].copy_from_slice(&to);
    ip
}
