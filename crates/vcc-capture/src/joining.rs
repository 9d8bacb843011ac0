//! Connections whose SYN was not captured: a port knows them by a handshake that could have begun them.

use vcc_domain::{Frame, TcpHeader};
use vcc_engine::sys;
use vcc_frames::{Packet, options};
use vcc_net::wire::ETHERTYPE_VLAN;

use crate::options::Options;
use crate::segment::Segment;

/// The MSS of Ethernet. A port adopts larger segments as it sees them.
const MSS_BYTES: u16 = 1460;
/// The largest, so that no window looks smaller than it is (RFC 7323, 2.3).
const WSCALE: u8 = 14;

/// SYN, SYN-ACK and ACK in front of a segment, with whether the segment's sender sends it. SACK is
/// assumed; ECN and timestamps are, if the segment has them.
pub(crate) fn handshake(
    frame: &Frame,
    header: &TcpHeader,
    segment: &Segment,
    from_opener: bool,
) -> [(Frame, bool); 3] {
    let Segment { from, to, .. } = *segment;
    let (opener, acceptor) = if from_opener { (from, to) } else { (to, from) };
    let (first, second) = (segment.seq.wrapping_sub(1), segment.ack.wrapping_sub(1));
    let (opener_iss, acceptor_iss) = if from_opener { (first, second) } else { (second, first) };
    let timestamps = Options::read(frame, header).timestamps();
    let has_ecn = segment.ip_ecn != 0;
    let build = |from_opener_now: bool, flags: u32, ecn_flags: u32| {
        let (from, to) = if from_opener_now { (opener, acceptor) } else { (acceptor, opener) };
        let (seq, ack) = match flags {
            sys::TCP_SYN => (opener_iss, 0),
            sys::TCP_ACK => (opener_iss.wrapping_add(1), acceptor_iss.wrapping_add(1)),
            _ => (acceptor_iss, opener_iss.wrapping_add(1)),
        };
        let mut parts = Vec::new();
        if flags & sys::TCP_SYN != 0 {
            parts.extend([
                options::mss(MSS_BYTES),
                options::wscale(WSCALE),
                options::sack_permitted(),
            ]);
        }
        if let Some([value, echo]) = timestamps {
            let is_senders = from_opener_now == from_opener;
            let (value, echo) = if is_senders { (value, echo) } else { (echo, value) };
            parts.push(options::timestamps(value, if flags == sys::TCP_SYN { 0 } else { echo }));
        }
        let flags = flags | if has_ecn { ecn_flags } else { 0 };
        let packet = Packet {
            tags: segment.vlan.map(|id| (ETHERTYPE_VLAN, id)).into_iter().collect(),
            seq,
            ack,
            flags: flags as u16,
            options: options::join(&parts),
            ..Packet::new(from, to)
        };
        (Frame::full(packet.frame()), from_opener_now == from_opener)
    };
    [
        build(true, sys::TCP_SYN, sys::TCP_ECE | sys::TCP_CWR),
        build(false, sys::TCP_SYN | sys::TCP_ACK, sys::TCP_ECE),
        build(true, sys::TCP_ACK, 0),
    ]
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    #[test]
    fn the_handshake_leads_to_the_segment() {
        let ends = ["10.0.0.2:40000", "192.0.2.9:80"].map(|end| end.parse::<SocketAddr>());
        let [opener, acceptor] = ends.map(|end| end.expect("an end"));
        let nops = [options::nops(2), options::timestamps(70, 60)].concat();
        for (from, to, from_opener, traffic_class) in
            [(opener, acceptor, true, 0), (acceptor, opener, false, 2)]
        {
            let packet = Packet {
                seq: 0,
                ack: 9001,
                options: options::join(std::slice::from_ref(&nops)),
                payload: vec![1; 9],
                tags: vec![(ETHERTYPE_VLAN, 5)],
                traffic_class,
                ..Packet::new(from, to)
            };
            let frame = Frame::full(packet.frame());
            let header = frame.tcp_header().expect("TCP");
            let segment = Segment::read(&frame, &header);
            let read =
                handshake(&frame, &header, &segment, from_opener).map(|(frame, is_senders)| {
                    let header = frame.tcp_header().expect("TCP");
                    let segment = Segment::read(&frame, &header);
                    assert_eq!(is_senders, segment.from == from);
                    assert_eq!(segment.vlan, Some(5));
                    let timestamps = Options::read(&frame, &header).timestamps();
                    (segment.flags, segment.seq, segment.ack, timestamps)
                });
            let (ecn_setup, ecn) = if traffic_class == 0 { (0, 0) } else { (0xc0, 0x40) };
            let expected = match from_opener {
                true => [
                    (sys::TCP_SYN, u32::MAX, 0, Some([70, 0])),
                    (sys::TCP_SYN | sys::TCP_ACK, 9000, 0, Some([60, 70])),
                    (sys::TCP_ACK, 0, 9001, Some([70, 60])),
                ],
                false => [
                    (sys::TCP_SYN | ecn_setup, 9000, 0, Some([60, 0])),
                    (sys::TCP_SYN | sys::TCP_ACK | ecn, u32::MAX, 9001, Some([70, 60])),
                    (sys::TCP_ACK, 9001, 0, Some([60, 70])),
                ],
            };
            assert_eq!(read, expected);
        }
    }
}
