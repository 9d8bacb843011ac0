//! Reads ICMP messages that say that a packet was too big: IPv4's type 3, code 4 (RFC 1191, 4), and
//! IPv6's type 2 (RFC 4443, 3.2).

use vcc_engine::TooBig;

use crate::checksum;
use crate::frame::Frame;
use crate::ip;
use crate::link::{self, Link};
use vcc_engine::FlowKey;
use vcc_net::wire::*;

const TYPE_UNREACHABLE: u8 = 3;
const CODE_FRAGMENTATION_NEEDED: u8 = 4;
const TYPE_PACKET_TOO_BIG: u8 = 2;
/// The header, behind which is the packet, and the checksum in it.
const ICMP_BYTES: usize = 8;
const ICMP_CHECK_AT: usize = 2;
/// What a router must quote behind the packet's IP header (RFC 792): the ports and the sequence
/// number.
const QUOTED_BYTES: usize = 8;

/// A message, and the connection that it quotes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quote {
    pub key: FlowKey,
    /// Without the time.
    pub message: TooBig,
    /// Offset of the message from the frame's start.
    icmp_at: usize,
    /// Offset of the quoted sequence number, likewise.
    seq_at: usize,
}

/// The fields of the quoted IP header.
struct Packet {
    sender: u128,
    receiver: u128,
    bytes: u32,
    tcp_at: usize,
}

/// Reads a frame to the guest. None if it is no such message, or one that the guest discards.
pub(crate) fn too_big(frame: &Frame) -> Option<Quote> {
    let link = link::parse(&frame.bytes).ok()?;
    let ip = &frame.bytes[link.l3_at..];
    let (icmp_at, icmp, guest) = message(frame, &link, ip)?;
    let ipv6 = link.ethertype == ETHERTYPE_IPV6;
    let mtu_bytes = match icmp[..2] {
        [TYPE_UNREACHABLE, CODE_FRAGMENTATION_NEEDED] if !ipv6 => read_u16(icmp, 6).into(),
        [TYPE_PACKET_TOO_BIG, _] if ipv6 => read_u32(icmp, 4),
        _ => return None,
    };
    let packet = &icmp[ICMP_BYTES..];
    let Packet { sender, receiver, bytes, tcp_at } =
        if ipv6 { packet_v6(packet) } else { packet_v4(packet) }?;
    let tcp = packet.get(tcp_at..tcp_at + QUOTED_BYTES)?;
    let seq = read_u32(tcp, TCP_SEQ_AT);
    (sender == guest).then(|| Quote {
        key: FlowKey::from_parts(
            (sender, read_u16(tcp, 0)),
            (receiver, read_u16(tcp, 2)),
            link.vlan,
        ),
        message: TooBig { now_us: 0, seq, mtu_bytes, packet_bytes: bytes, ipv6: ipv6.into() },
        icmp_at: link.l3_at + icmp_at,
        seq_at: link.l3_at + icmp_at + ICMP_BYTES + tcp_at + TCP_SEQ_AT,
    })
}

/// An ICMP message with its offset in the packet and its receiver, if its checksums are right.
fn message<'a>(frame: &Frame, link: &Link, ip: &'a [u8]) -> Option<(usize, &'a [u8], u128)> {
    let (at, end, guest, ipv6) = match link.ethertype {
        ETHERTYPE_IPV4 if ip.len() >= IPV4_BYTES && ip[9] == PROTOCOL_ICMP => {
            let at = usize::from(ip[0] & 15) * 4;
            let is_whole = ip[0] >> 4 == 4 && at >= IPV4_BYTES && !ip::is_fragment(ip);
            let header =
                ip.get(..at).filter(|header| is_whole && checksum::compute(&[header]) == 0)?;
            (at, ip::length_v4(ip), ip::address_v4(header, IPV4_DESTINATION_AT), None)
        }
        ETHERTYPE_IPV6 if ip.len() >= IPV6_BYTES && ip[6] == PROTOCOL_ICMPV6 => {
            let guest = ip::address_v6(ip, IPV6_DESTINATION_AT);
            let source = ip::address_v6(ip, IPV6_SOURCE_AT);
            (IPV6_BYTES, IPV6_BYTES + ip::length_v6(ip), guest, Some(source))
        }
        _ => return None,
    };
    let icmp = ip.get(at..end).filter(|icmp| icmp.len() >= ICMP_BYTES)?;
    let check = match ipv6 {
        None => checksum::compute(&[icmp]),
        Some(source) => {
            let [source, guest] = [source, guest].map(u128::to_be_bytes);
            checksum::of_transport(PROTOCOL_ICMPV6, &source, &guest, icmp)
        }
    };
    // A partial checksum is one of TCP.
    (frame.checksum.is_complete() && check == 0).then_some((at, icmp, guest))
}

fn packet_v4(ip: &[u8]) -> Option<Packet> {
    let tcp_at = usize::from(ip.first()? & 15) * 4;
    let is_tcp = tcp_at >= IPV4_BYTES
        && ip.len() >= tcp_at
        && ip[0] >> 4 == 4
        && ip[9] == PROTOCOL_TCP
        && !ip::is_fragment(ip);
    is_tcp.then(|| Packet {
        sender: ip::address_v4(ip, IPV4_SOURCE_AT),
        receiver: ip::address_v4(ip, IPV4_DESTINATION_AT),
        bytes: ip::length_v4(ip) as u32,
        tcp_at,
    })
}

fn packet_v6(ip: &[u8]) -> Option<Packet> {
    if ip.len() < IPV6_BYTES || ip[0] >> 4 != 6 {
        return None;
    }
    let payload_bytes = ip::length_v6(ip);
    Some(Packet {
        sender: ip::address_v6(ip, IPV6_SOURCE_AT),
        receiver: ip::address_v6(ip, IPV6_DESTINATION_AT),
        bytes: if payload_bytes == 0 { 0 } else { (IPV6_BYTES + payload_bytes) as u32 },
        tcp_at: ip::tcp_behind_extensions(ip).ok()?,
    })
}

impl Quote {
    /// Lets the message quote another segment.
    pub(crate) fn set_seq(&self, frame: &mut Frame, seq: u32) {
        let before = self.message.seq.to_be_bytes();
        write_u32(&mut frame.bytes, self.seq_at, seq);
        // A header's fields are at even offsets of the message.
        let check_at = self.icmp_at + ICMP_CHECK_AT;
        let check = read_u16(&frame.bytes, check_at);
        write_u16(
            &mut frame.bytes,
            check_at,
            checksum::updated(check, &before, &seq.to_be_bytes()),
        );
    }
}

#[cfg(test)]
mod tests {
    use vcc_frames::{Packet, icmp, payload, wire};

    use super::*;
    use crate::testing::{Talk, framed};

    const MTU_BYTES: u32 = 1400;
    const L3: usize = ETHERNET_BYTES + VLAN_TAG_BYTES;

    /// A message about a segment of this guest in VLAN 7.
    fn about(talk: &Talk, quoted_bytes: usize) -> Frame {
        let segment = segment(talk);
        Frame::full(icmp::too_big(&segment.frame(), &segment.headers(), MTU_BYTES, quoted_bytes))
    }

    fn segment(talk: &Talk) -> Packet {
        let tags = vec![(wire::ETHERTYPE_VLAN, 7)];
        Packet { tags, payload: payload(1460), seq: 0xffff_fff0, ..talk.segment(true) }
    }

    #[test]
    fn a_message_says_what_it_quotes() {
        for talk in [Talk::v4(), Talk::v6()] {
            for quoted_bytes in [QUOTED_BYTES, 2000] {
                let mut frame = about(&talk, quoted_bytes);
                let quote = too_big(&frame).expect("a message");
                assert_eq!(quote.key, FlowKey::new(talk.guest, talk.peer, Some(7)));
                let TooBig { seq, mtu_bytes, packet_bytes, ipv6, .. } = quote.message;
                assert_eq!((seq, mtu_bytes), (0xffff_fff0, MTU_BYTES));
                let headers_bytes = if ipv6 == 1 { 60 } else { 40 };
                assert_eq!(packet_bytes, headers_bytes + 1460);
                assert_eq!(ipv6 == 1, talk.guest.is_ipv6());
                quote.set_seq(&mut frame, 5);
                assert_eq!(too_big(&frame).map(|quote| quote.message.seq), Some(5));
                assert!(icmp::verify(&frame.bytes, L3));
            }
        }
    }

    #[test]
    fn extensions_and_options_may_be_before_tcp() {
        let extensions = vec![(wire::PROTOCOL_DESTINATION, vec![0, 1, 4, 0, 0, 0, 0])];
        for packet in [
            Packet { ip_options: vec![1; 8], ..Talk::v4().segment(true) },
            Packet { extensions, ..Talk::v6().segment(true) },
        ] {
            let message = icmp::too_big(&packet.frame(), &packet.headers(), MTU_BYTES, 8);
            let quote = too_big(&Frame::full(message)).expect("a message");
            assert_eq!(quote.message.seq, packet.seq);
        }
    }

    /// At any length, and with any byte changed.
    #[test]
    fn what_the_guest_discards_says_nothing() {
        for talk in [Talk::v4(), Talk::v6()] {
            let whole = about(&talk, QUOTED_BYTES);
            for length in 0..whole.bytes.len() {
                assert!(too_big(&Frame::full(whole.bytes[..length].to_vec())).is_none());
            }
            for quoted_bytes in 0..QUOTED_BYTES {
                assert!(too_big(&about(&talk, quoted_bytes)).is_none(), "{quoted_bytes} quoted");
            }
            // IPv6's first header has no sum of its own but what the pseudo-header has of it.
            let first = if talk.guest.is_ipv6() { L3 + 8 } else { L3 };
            for at in first..whole.bytes.len() {
                let mut changed = whole.clone();
                changed.bytes[at] ^= 0x10;
                assert!(too_big(&changed).is_none(), "byte {at}");
            }
            assert!(too_big(&framed(&segment(&talk))).is_none());
        }
    }

    /// With a right sum, as that of IPv4 does not cover the receiver.
    #[test]
    fn a_message_about_a_packet_of_another_guest_says_nothing() {
        let (talk, other) = (Talk::v4(), Talk::v4());
        let other = Talk { guest: talk.peer, peer: talk.guest, ..other };
        let [mut frame, foreign] = [about(&talk, 8), about(&other, 8)];
        let icmp_at = L3 + IPV4_BYTES;
        frame.bytes.truncate(icmp_at);
        frame.bytes.extend(&foreign.bytes[icmp_at..]);
        assert!(icmp::verify(&frame.bytes, L3) && too_big(&frame).is_none());
    }
}
