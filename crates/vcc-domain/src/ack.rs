//! Builds a pure ACK as the peer might have sent it.

use std::net::IpAddr;

use vcc_engine::{FlowState, sys};

use crate::checksum;
use crate::frame::Frame;
use crate::key::FlowKey;
use crate::wire::*;

const HOP_LIMIT: u8 = 64;
const IPV4_DONT_FRAGMENT: u16 = 0x4000;

/// The frame of an ACK that repeats the last acknowledgement and window shown to the guest. It has
/// no options: Linux accepts a segment without timestamps from a peer that negotiated them (RFC
/// 7323, 3.2 would drop it), and stale ones would fail PAWS.
pub fn ack_to_guest(key: &FlowKey, flow: &FlowState, neighbour: &sys::vcc_neighbour) -> Frame {
    let mut bytes = [neighbour.guest_mac, neighbour.next_hop_mac].concat();
    if let Some(vlan) = key.vlan() {
        bytes.extend(ETHERTYPE_VLAN.to_be_bytes());
        bytes.extend(vlan.to_be_bytes());
    }
    match (key.peer().ip(), key.guest().ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            bytes.extend(ETHERTYPE_IPV4.to_be_bytes());
            bytes.extend(ipv4(from.octets(), to.octets()));
        }
        _ => {
            bytes.extend(ETHERTYPE_IPV6.to_be_bytes());
            bytes.extend(ipv6(key));
        }
    }
    bytes.extend(tcp(key, flow));
    Frame::full(bytes)
}

fn tcp(key: &FlowKey, flow: &FlowState) -> [u8; TCP_BYTES] {
    let mut tcp = [0; TCP_BYTES];
    write_u16(&mut tcp, 0, key.peer().port());
    write_u16(&mut tcp, 2, key.guest().port());
    write_u32(&mut tcp, TCP_SEQ_AT, flow.rcv_nxt);
    write_u32(&mut tcp, TCP_ACK_AT, flow.snd_una);
    let word = tcp_offset_flags(TCP_BYTES, sys::TCP_ACK as u16);
    write_u16(&mut tcp, TCP_OFFSET_FLAGS_AT, word);
    write_u16(&mut tcp, TCP_WINDOW_AT, flow.window_shown);
    let check = checksum::of_tcp(&key.as_raw().peer_addr, &key.as_raw().guest_addr, &tcp);
    write_u16(&mut tcp, TCP_CHECK_AT, check);
    tcp
}

fn ipv4(from: [u8; 4], to: [u8; 4]) -> [u8; IPV4_BYTES] {
    let mut ip = [0; IPV4_BYTES];
    ip[0] = 0x45;
    write_u16(&mut ip, 2, (IPV4_BYTES + TCP_BYTES) as u16);
    write_u16(&mut ip, 6, IPV4_DONT_FRAGMENT);
    ip[8] = HOP_LIMIT;
    ip[9] = PROTOCOL_TCP;
    ip[12..16].copy_from_slice(&from);
    ip[16..20].copy_from_slice(&to);
    let check = checksum::of(&[&ip]);
    write_u16(&mut ip, IPV4_CHECK_AT, check);
    ip
}

fn ipv6(key: &FlowKey) -> [u8; IPV6_BYTES] {
    let mut ip = [0; IPV6_BYTES];
    ip[0] = 0x60;
    write_u16(&mut ip, 4, TCP_BYTES as u16);
    ip[6] = PROTOCOL_TCP;
    ip[7] = HOP_LIMIT;
    ip[8..24].copy_from_slice(&key.as_raw().peer_addr);
    ip[24..40].copy_from_slice(&key.as_raw().guest_addr);
    ip
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(guest: &str, peer: &str, vlan: Option<u16>) -> Vec<u8> {
        let [guest, peer] = [guest, peer].map(|end| end.parse().expect("an end"));
        let flow = FlowState(sys::vcc_flow {
            rcv_nxt: 0x0102_0304,
            snd_una: 0xa0a1_a2a3,
            window_shown: 0x1234,
            ..Default::default()
        });
        let neighbour =
            sys::vcc_neighbour { guest_mac: [2, 0, 0, 0, 0, 1], next_hop_mac: [2, 0, 0, 0, 0, 2] };
        ack_to_guest(&FlowKey::new(guest, peer, vlan), &flow, &neighbour).bytes
    }

    /// The bytes that `vcc emit` sends; the checksums come from another implementation of RFC 1071.
    #[test]
    fn over_ipv4_in_a_vlan() {
        let expected = [
            &[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0, 0, 5, 8, 0][..],
            &[0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0xb6, 0xcc, 192, 0, 2, 2, 192, 0, 2, 1],
            &[0, 80, 0x9c, 0x40, 1, 2, 3, 4, 0xa0, 0xa1, 0xa2, 0xa3, 0x50, 0x10, 0x12, 0x34],
            &[0x35, 0xc1, 0, 0],
        ];
        let frame = frame("192.0.2.1:40000", "192.0.2.2:80", Some(5));
        assert_eq!(frame, expected.concat());
    }

    #[test]
    fn over_ipv6() {
        let frame = frame("[2001:db8::1]:40000", "[2001:db8::2]:80", None);
        assert_eq!(frame[12..22], [0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, 6, 64]);
        let addresses = 0x2001_0db8_u128 << 96;
        assert_eq!(frame[22..38], (addresses + 2).to_be_bytes());
        assert_eq!(frame[38..54], (addresses + 1).to_be_bytes());
        let head = [0, 80, 0x9c, 0x40, 1, 2, 3, 4, 0xa0, 0xa1, 0xa2, 0xa3, 0x50, 0x10, 0x12, 0x34];
        assert_eq!(frame[54..70], head);
        assert_eq!(frame.len(), 74);
        // Addresses, protocol and length, and the segment without its checksum.
        let sum: u32 = 2 * (0x2001 + 0x0db8)
            + 3
            + (6 + 20)
            + (0x0050 + 0x9c40 + 0x0102 + 0x0304)
            + (0xa0a1 + 0xa2a3 + 0x5010 + 0x1234);
        let check = !((sum & 0xffff) + (sum >> 16)) as u16;
        assert_eq!(frame[70..], [(check >> 8) as u8, check as u8, 0, 0]);
    }
}
