//! An acknowledgement without data, as the peer might have sent it.

use std::net::{IpAddr, SocketAddr};

use vcc_engine::sys;

use crate::flows::FlowId;

const ETHERTYPE_VLAN: u16 = 0x8100;
const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const PROTOCOL_TCP: u8 = 6;
const TTL: u8 = 64;
const IPV4_DONT_FRAGMENT: u16 = 0x4000;
const TCP_BYTES: usize = 20;
const TCP_CHECK_AT: usize = 16;
const IPV4_CHECK_AT: usize = 10;

/// The frame of an ACK that says what `flow` was told last. It has no options: without timestamps,
/// a guest that negotiated them cannot hold their age against it as Linux has it (RFC 7323, 3.2 would drop them).
pub(super) fn ack(id: &FlowId, flow: &sys::vcc_flow, neighbour: &sys::vcc_neighbour) -> Vec<u8> {
    let mut frame = Vec::with_capacity(80);
    frame.extend(neighbour.guest_mac);
    frame.extend(neighbour.next_hop_mac);
    if let Some(vlan) = id.vlan {
        frame.extend(ETHERTYPE_VLAN.to_be_bytes());
        frame.extend(vlan.to_be_bytes());
    }
    let tcp = tcp(id.peer, id.guest, flow);
    match (id.peer.ip(), id.guest.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            frame.extend(ETHERTYPE_IPV4.to_be_bytes());
            frame.extend(ipv4(from.octets(), to.octets(), tcp.len() as u16));
        }
        (from, to) => {
            frame.extend(ETHERTYPE_IPV6.to_be_bytes());
            frame.extend(ipv6(v6(from), v6(to), tcp.len() as u16));
        }
    }
    frame.extend(tcp);
    frame
}

fn tcp(from: SocketAddr, to: SocketAddr, flow: &sys::vcc_flow) -> [u8; TCP_BYTES] {
    let mut tcp = [0; TCP_BYTES];
    tcp[0..2].copy_from_slice(&from.port().to_be_bytes());
    tcp[2..4].copy_from_slice(&to.port().to_be_bytes());
    tcp[4..8].copy_from_slice(&flow.rcv_nxt.to_be_bytes());
    tcp[8..12].copy_from_slice(&flow.snd_una.to_be_bytes());
    tcp[12] = (TCP_BYTES as u8 / 4) << 4;
    tcp[13] = sys::TCP_ACK as u8;
    tcp[14..16].copy_from_slice(&flow.window_shown.to_be_bytes());
    // The pseudo-headers of RFC 9293, 3.1, and RFC 8200, 8.1: IPv4's is shorter by zeros.
    let [from, to] = [from, to].map(|end| match end.ip() {
        IpAddr::V4(v4) => u128::from(v4.to_bits()).to_be_bytes(),
        IpAddr::V6(v6) => v6.octets(),
    });
    let rest = [0, PROTOCOL_TCP, 0, TCP_BYTES as u8];
    let check = checksum(&[&from, &to, &rest, &tcp]);
    tcp[TCP_CHECK_AT..][..2].copy_from_slice(&check.to_be_bytes());
    tcp
}

fn ipv4(from: [u8; 4], to: [u8; 4], payload_bytes: u16) -> [u8; 20] {
    let mut ip = [0; 20];
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&(20 + payload_bytes).to_be_bytes());
    ip[6..8].copy_from_slice(&IPV4_DONT_FRAGMENT.to_be_bytes());
    ip[8] = TTL;
    ip[9] = PROTOCOL_TCP;
    ip[12..16].copy_from_slice(&from);
    ip[16..20].copy_from_slice(&to);
    let check = checksum(&[&ip]);
    ip[IPV4_CHECK_AT..][..2].copy_from_slice(&check.to_be_bytes());
    ip
}

fn ipv6(from: [u8; 16], to: [u8; 16], payload_bytes: u16) -> [u8; 40] {
    let mut ip = [0; 40];
    ip[0] = 0x60;
    ip[4..6].copy_from_slice(&payload_bytes.to_be_bytes());
    ip[6] = PROTOCOL_TCP;
    ip[7] = TTL;
    ip[8..24].copy_from_slice(&from);
    ip[24..40].copy_from_slice(&to);
    ip
}

fn v6(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// RFC 1071. Every part is of even length.
fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks_exact(2));
    let sum: u32 = words.map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEIGHBOUR: sys::vcc_neighbour =
        sys::vcc_neighbour { guest_mac: [2, 0, 0, 0, 0, 1], next_hop_mac: [2, 0, 0, 0, 0, 2] };

    fn frame(guest: &str, peer: &str, vlan: Option<u16>) -> Vec<u8> {
        let [guest, peer] = [guest, peer].map(|end| end.parse().expect("an end"));
        let flow = sys::vcc_flow {
            rcv_nxt: 0x0102_0304,
            snd_una: 0xa0a1_a2a3,
            window_shown: 0x1234,
            ..Default::default()
        };
        ack(&FlowId { guest, peer, vlan }, &flow, &NEIGHBOUR)
    }

    /// Byte for byte; the sums come from another implementation of RFC 1071.
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
        assert_eq!(frame[12..14], [0x86, 0xdd]);
        assert_eq!(frame[14..22], [0x60, 0, 0, 0, 0, 20, 6, 64]);
        let addresses = 0x2001_0db8_u128 << 96;
        assert_eq!(frame[22..38], (addresses + 2).to_be_bytes());
        assert_eq!(frame[38..54], (addresses + 1).to_be_bytes());
        assert_eq!(frame[54..70], frame_tcp_head());
        // 2 * (0x2001 + 0x0db8) + 3, TCP and its length, and the segment without its sum.
        let sum = 2 * (0x2001 + 0x0db8)
            + 3
            + 6
            + 20
            + 0x0050
            + 0x9c40
            + 0x0102
            + 0x0304
            + 0xa0a1
            + 0xa2a3
            + 0x5010
            + 0x1234;
        let check = !(((sum & 0xffff) + (sum >> 16)) as u16);
        assert_eq!(frame[70..74], [(check >> 8) as u8, check as u8, 0, 0]);
        assert_eq!(frame.len(), 74);
    }

    fn frame_tcp_head() -> [u8; 16] {
        [0, 80, 0x9c, 0x40, 1, 2, 3, 4, 0xa0, 0xa1, 0xa2, 0xa3, 0x50, 0x10, 0x12, 0x34]
    }
}
