//! The parts of a segment by which its connection is found, and by which it is judged.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use vcc_domain::{Frame, TcpHeader};
use vcc_engine::sys;
use vcc_net::wire::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub vlan: Option<u16>,
    pub seq: u32,
    pub ack: u32,
    /// The bits of RFC 9293, 3.1.
    pub flags: u32,
    pub payload_bytes: u32,
    /// The ECN field of its IP header.
    pub ip_ecn: u8,
    /// Of its frame: the source, and the destination. 0, if the capture has none.
    pub macs: [Mac; 2],
}

/// An Ethernet address.
pub type Mac = [u8; MAC_BYTES];

/// The flags below the data offset, reserved ones included.
const FLAGS: u32 = 0xfff;
/// In IPv4's TOS, or the traffic class.
const ECN: u8 = 3;
/// In the IP header.
const IPV4_LENGTH_AT: usize = 2;
const IPV6_LENGTH_AT: usize = 4;

/// Where the IP header begins, behind a VLAN tag if the frame has one.
pub(crate) fn ip_at(frame: &[u8]) -> usize {
    let is_tagged = read_u16(frame, ETHERNET_BYTES - 2) == ETHERTYPE_VLAN;
    ETHERNET_BYTES + if is_tagged { VLAN_TAG_BYTES } else { 0 }
}

/// Where the payload ends: at IP's length, because Ethernet pads short frames. A super-segment above
/// 64 KiB has the length 0, and ends with its frame.
pub(crate) fn payload_end(frame: &[u8], header: &TcpHeader) -> usize {
    let at = ip_at(frame);
    let (length_at, before) = match header.is_ipv6 {
        false => (IPV4_LENGTH_AT, 0),
        true => (IPV6_LENGTH_AT, IPV6_BYTES),
    };
    let end = match read_u16(frame, at + length_at) {
        0 => frame.len(),
        length => at + before + usize::from(length),
    };
    end.clamp(header.end, frame.len().max(header.end))
}

impl Segment {
    /// Of a frame with this TCP header.
    pub(crate) fn read(frame: &Frame, header: &TcpHeader) -> Self {
        let bytes = &frame.bytes;
        let is_tagged = read_u16(bytes, ETHERNET_BYTES - 2) == ETHERTYPE_VLAN;
        let vlan = is_tagged.then(|| read_u16(bytes, ETHERNET_BYTES) & VLAN_ID_MASK);
        let ip_at = ip_at(bytes);
        let address = |v4_at, v6_at| match header.is_ipv6 {
            false => IpAddr::V4(Ipv4Addr::from_bits(read_u32(bytes, ip_at + v4_at))),
            true => {
                let v6 = bytes[ip_at + v6_at..].first_chunk::<16>().copied().unwrap_or_default();
                IpAddr::V6(Ipv6Addr::from(v6))
            }
        };
        let end = |v4_at, v6_at, port_at| {
            SocketAddr::new(address(v4_at, v6_at), read_u16(bytes, header.at + port_at))
        };
        let flags = u32::from(read_u16(bytes, header.at + TCP_OFFSET_FLAGS_AT)) & FLAGS;
        Self {
            from: end(IPV4_SOURCE_AT, IPV6_SOURCE_AT, 0),
            to: end(IPV4_DESTINATION_AT, IPV6_DESTINATION_AT, 2),
            vlan: vlan.filter(|id| *id != 0),
            seq: read_u32(bytes, header.at + TCP_SEQ_AT),
            ack: read_u32(bytes, header.at + TCP_ACK_AT),
            flags,
            payload_bytes: (payload_end(bytes, header) - header.end) as u32,
            ip_ecn: match header.is_ipv6 {
                false => bytes[ip_at + 1] & ECN,
                // The traffic class lies across the first two bytes.
                true => bytes[ip_at + 1] >> 4 & ECN,
            },
            macs: [MAC_BYTES, 0].map(|at| bytes[at..].first_chunk().copied().unwrap_or_default()),
        }
    }

    pub fn has(&self, flags: u32) -> bool {
        self.flags & flags == flags
    }

    /// The sequence number behind it. SYN and FIN count as a byte.
    pub fn end(&self) -> u32 {
        let ends = self.flags & (sys::TCP_SYN | sys::TCP_FIN);
        self.seq.wrapping_add(self.payload_bytes).wrapping_add(ends.count_ones())
    }

    /// Is it a SYN without ACK?
    pub fn opens(&self) -> bool {
        self.has(sys::TCP_SYN) && !self.has(sys::TCP_ACK)
    }

    /// Is it a SYN-ACK?
    pub fn accepts(&self) -> bool {
        self.has(sys::TCP_SYN | sys::TCP_ACK)
    }
}

#[cfg(test)]
mod tests {
    use vcc_frames::Packet;

    use super::*;

    #[test]
    fn ends_and_vlan_are_those_of_the_frame() {
        for (from, to) in [("10.0.0.1:40000", "10.0.0.2:80"), ("[fd00::1]:40000", "[fd00::2]:80")] {
            let [from, to]: [SocketAddr; 2] = [from, to].map(|end| end.parse().expect("an end"));
            for (tags, vlan) in [(vec![], None), (vec![(ETHERTYPE_VLAN, 0xe007)], Some(7))] {
                for packet in [Packet::syn(from, to), Packet::new(from, to)] {
                    let (seq, ack, payload, ip_ecn) = (7, 9, vec![1; 5], 2);
                    let packet = Packet { seq, ack, payload, traffic_class: 0xba, ..packet };
                    let flags = u32::from(packet.flags);
                    let frame = Frame::full(Packet { tags: tags.clone(), ..packet }.frame());
                    let header = frame.tcp_header().expect("TCP");
                    let (payload_bytes, macs) = (5, [vcc_frames::MACS[1], vcc_frames::MACS[0]]);
                    let segment =
                        Segment { from, to, vlan, seq, ack, flags, payload_bytes, ip_ecn, macs };
                    assert_eq!(Segment::read(&frame, &header), segment);
                    assert_eq!(segment.opens(), flags == sys::TCP_SYN);
                }
            }
        }
    }
}
