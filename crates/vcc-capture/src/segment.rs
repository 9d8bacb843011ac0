//! The parts of a segment by which its connection is found.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use vcc_domain::{Frame, TcpHeader};
use vcc_engine::sys;
use vcc_net::wire::*;

/// A segment's ends, and whether it begins a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub vlan: Option<u16>,
    pub opens: bool,
}

impl Segment {
    /// Of a frame with this TCP header.
    pub(crate) fn read(frame: &Frame, header: &TcpHeader) -> Self {
        let bytes = &frame.bytes;
        let is_tagged = read_u16(bytes, ETHERNET_BYTES - 2) == ETHERTYPE_VLAN;
        let vlan = is_tagged.then(|| read_u16(bytes, ETHERNET_BYTES) & VLAN_ID_MASK);
        let ip_at = ETHERNET_BYTES + if is_tagged { VLAN_TAG_BYTES } else { 0 };
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
        let flags = u32::from(read_u16(bytes, header.at + TCP_OFFSET_FLAGS_AT));
        Self {
            from: end(IPV4_SOURCE_AT, IPV6_SOURCE_AT, 0),
            to: end(IPV4_DESTINATION_AT, IPV6_DESTINATION_AT, 2),
            vlan: vlan.filter(|id| *id != 0),
            opens: flags & (sys::TCP_SYN | sys::TCP_ACK) == sys::TCP_SYN,
        }
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
                    let opens = packet.flags == sys::TCP_SYN as u16;
                    let frame = Frame::full(Packet { tags: tags.clone(), ..packet }.frame());
                    let header = frame.tcp_header().expect("TCP");
                    let segment = Segment { from, to, vlan, opens };
                    assert_eq!(Segment::read(&frame, &header), segment);
                }
            }
        }
    }
}
