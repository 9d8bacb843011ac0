//! Frames inside tunnels, of the kinds that ports look into (docs/coexistence.md), and behind several VLAN
//! tags, of which ports read one.

use vcc_net::wire::{
    ETHERNET_BYTES, ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_VLAN, IPV6_BYTES, VLAN_TAG_BYTES,
    read_u16, read_u24, read_u32,
};

use crate::packet::Packet;

const ETHERTYPE_SERVICE_VLAN: u16 = 0x88a8;
/// Ethernet in Geneve and GRE.
const ETHERTYPE_BRIDGED: u16 = 0x6558;
const UDP: u8 = 17;
const UDP_BYTES: usize = 8;
const GRE: u8 = 47;
/// The second is that of Linux's devices by default.
const VXLAN_PORTS: [u16; 2] = [4789, 8472];
const GENEVE_PORT: u16 = 6081;
/// Of VXLAN, and of Geneve without options.
const HEADER_BYTES: usize = 8;
const VXLAN_HAS_VNI: u8 = 0x08;

/// A tunnel, with what tells it from others of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tunnel {
    Vxlan { vni: u32 },
    Geneve { vni: u32 },
    Gre { key: Option<u32> },
}

impl Tunnel {
    pub fn name(self) -> String {
        match self {
            Self::Vxlan { vni } => format!("vxlan {vni}"),
            Self::Geneve { vni } => format!("geneve {vni}"),
            Self::Gre { key: Some(key) } => format!("gre {key}"),
            Self::Gre { key: None } => "gre".into(),
        }
    }
}

/// Where the inner frame begins, and its Ethertype; that of Ethernet itself: [`ETHERTYPE_BRIDGED`].
struct Inner {
    tunnel: Tunnel,
    at: usize,
    ethertype: u16,
}

/// Leaves the innermost of several VLAN tags.
pub(crate) fn strip_outer_tags(packet: &mut Packet) {
    const TAGS_MAX: usize = 8;
    let is_tag = |at| {
        let ethertype = ethertype(&packet.frame, at);
        ethertype.is_some_and(|it| [ETHERTYPE_VLAN, ETHERTYPE_SERVICE_VLAN].contains(&it))
    };
    let at = ETHERNET_BYTES - 2;
    let places = (at..).step_by(VLAN_TAG_BYTES).take(TAGS_MAX);
    let Some(innermost) = places.take_while(|at| is_tag(*at)).last() else { return };
    packet.frame.drain(at..innermost);
    packet.frame_bytes = packet.frame_bytes.saturating_sub(innermost - at);
    packet.frame[at..at + 2].copy_from_slice(&ETHERTYPE_VLAN.to_be_bytes());
}

fn ethertype(frame: &[u8], at: usize) -> Option<u16> {
    frame.get(at..at + 2).map(|bytes| read_u16(bytes, 0))
}

/// Replaces the frame by the one inside it. None: it is in no tunnel.
pub(crate) fn open(packet: &mut Packet) -> Option<Tunnel> {
    let Inner { tunnel, at, ethertype } = inner(&packet.frame)?;
    let cut = packet.frame.drain(..at).len();
    packet.frame_bytes = packet.frame_bytes.saturating_sub(cut);
    if ethertype != ETHERTYPE_BRIDGED {
        let mut header = [0; ETHERNET_BYTES];
        header[ETHERNET_BYTES - 2..].copy_from_slice(&ethertype.to_be_bytes());
        packet.frame.splice(..0, header);
        packet.frame_bytes += ETHERNET_BYTES;
    }
    Some(tunnel)
}

fn inner(frame: &[u8]) -> Option<Inner> {
    let mut at = ETHERNET_BYTES;
    let mut outer = ethertype(frame, at - 2)?;
    if outer == ETHERTYPE_VLAN {
        at += VLAN_TAG_BYTES;
        outer = ethertype(frame, at - 2)?;
    }
    let (protocol, at) = transport(outer, frame, at)?;
    match protocol {
        UDP => in_udp(frame, at),
        GRE => in_gre(frame, at),
        _ => None,
    }
}

/// The protocol behind IP, and where it begins. Fragments are not read, and of extension headers the one that
/// Linux puts in front of GRE (RFC 2473, 4.1.1).
fn transport(ethertype: u16, frame: &[u8], at: usize) -> Option<(u8, usize)> {
    const IPV4_LEAST_BYTES: usize = 20;
    const OFFSET_AND_MORE: u16 = 0x3fff;
    const DESTINATION_OPTIONS: u8 = 60;
    let ip = frame.get(at..)?;
    match ethertype {
        ETHERTYPE_IPV4 if ip.len() >= IPV4_LEAST_BYTES => {
            let header_bytes = usize::from(ip[0] & 0xf) * 4;
            let is_whole =
                header_bytes >= IPV4_LEAST_BYTES && read_u16(ip, 6) & OFFSET_AND_MORE == 0;
            is_whole.then_some((ip[9], at + header_bytes))
        }
        ETHERTYPE_IPV6 if ip.len() >= IPV6_BYTES => {
            match (ip[6], ip.get(IPV6_BYTES..IPV6_BYTES + 2)) {
                (DESTINATION_OPTIONS, Some([protocol, more])) => {
                    Some((*protocol, at + IPV6_BYTES + 8 * (usize::from(*more) + 1)))
                }
                (protocol, _) => Some((protocol, at + IPV6_BYTES)),
            }
        }
        _ => None,
    }
}

fn in_udp(frame: &[u8], at: usize) -> Option<Inner> {
    let udp = frame.get(at..at + UDP_BYTES + HEADER_BYTES)?;
    let (port, header) = (read_u16(udp, 2), &udp[UDP_BYTES..]);
    let at = at + UDP_BYTES + HEADER_BYTES;
    let vni = read_u24(header, 4);
    if VXLAN_PORTS.contains(&port) && header[0] & VXLAN_HAS_VNI != 0 {
        return Some(Inner { tunnel: Tunnel::Vxlan { vni }, at, ethertype: ETHERTYPE_BRIDGED });
    }
    let is_geneve = port == GENEVE_PORT && header[0] >> 6 == 0;
    let options_bytes = usize::from(header[0] & 0x3f) * 4;
    let ethertype = inner_ethertype(read_u16(header, 2))?;
    is_geneve
        .then_some(Inner { tunnel: Tunnel::Geneve { vni }, at: at + options_bytes, ethertype })
        .filter(|inner| inner.at <= frame.len())
}

fn in_gre(frame: &[u8], at: usize) -> Option<Inner> {
    const CHECKSUM: u16 = 0x8000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    const READ: u16 = CHECKSUM | KEY | SEQUENCE;
    let gre = frame.get(at..).filter(|gre| gre.len() >= 4)?;
    let flags = read_u16(gre, 0);
    if flags & !READ != 0 {
        return None;
    }
    let words = |bits: u16| (flags & bits).count_ones() as usize * 4;
    let header_bytes = 4 + words(READ);
    let key_at = 4 + words(CHECKSUM);
    let key = (flags & KEY != 0)
        .then(|| gre.get(key_at..key_at + 4))
        .map(|key| key.map(|key| read_u32(key, 0)));
    let key = match key {
        Some(key) => Some(key?),
        None => None,
    };
    let ethertype = inner_ethertype(read_u16(gre, 2))?;
    let at = at + header_bytes;
    (at <= frame.len()).then_some(Inner { tunnel: Tunnel::Gre { key }, at, ethertype })
}

fn inner_ethertype(ethertype: u16) -> Option<u16> {
    [ETHERTYPE_BRIDGED, ETHERTYPE_IPV4, ETHERTYPE_IPV6].contains(&ethertype).then_some(ethertype)
}

#[cfg(test)]
mod tests {
    use vcc_frames::{Packet as Segment, TunnelHeader};

    use super::*;

    fn segment() -> Vec<u8> {
        let ends = ["10.0.0.2:40000", "10.0.0.9:80"].map(|end| end.parse().expect("an end"));
        Segment { payload: vec![7; 30], ..Segment::new(ends[0], ends[1]) }.frame()
    }

    fn packet(frame: Vec<u8>) -> Packet {
        Packet { frame_bytes: frame.len() + 100, frame, ..Packet::default() }
    }

    fn end(header: TunnelHeader, is_ipv6: bool) -> vcc_frames::Tunnel {
        let ends = if is_ipv6 { ["fd00::1", "fd00::2"] } else { ["192.0.2.1", "192.0.2.2"] };
        let [from, to] = ends.map(|end| end.parse().expect("an address"));
        vcc_frames::Tunnel { header, from, to, checksum: true, limit: is_ipv6 }
    }

    #[test]
    fn the_inner_frame_is_found() {
        let inner = segment();
        let gre = |key, sequence, ethernet| TunnelHeader::Gre { key, sequence, ethernet };
        let geneve = |options, ethernet| TunnelHeader::Geneve { vni: 256, options, ethernet };
        for is_ipv6 in [false, true] {
            for (header, tunnel) in [
                (TunnelHeader::Vxlan { port: 4789, vni: 7 }, Tunnel::Vxlan { vni: 7 }),
                (TunnelHeader::Vxlan { port: 8472, vni: 7 }, Tunnel::Vxlan { vni: 7 }),
                (geneve(vec![], true), Tunnel::Geneve { vni: 256 }),
                (geneve(vec![1; 12], false), Tunnel::Geneve { vni: 256 }),
                (gre(None, None, false), Tunnel::Gre { key: None }),
                (gre(Some(5), Some(9), true), Tunnel::Gre { key: Some(5) }),
            ] {
                let whole = end(header.clone(), is_ipv6).wrap(&inner, 0);
                let mut opened = packet(whole.clone());
                assert_eq!(open(&mut opened), Some(tunnel), "{header:?}");
                assert_eq!(opened.frame[ETHERNET_BYTES - 2..], inner[ETHERNET_BYTES - 2..]);
                assert_eq!(opened.frame_bytes, inner.len() + 100);
                for kept in 0..whole.len() - inner.len() {
                    let mut cut = packet(whole[..kept].to_vec());
                    assert_eq!(open(&mut cut), None, "{kept} bytes of {header:?}");
                    assert_eq!(cut.frame, whole[..kept]);
                }
            }
        }
    }

    #[test]
    fn other_frames_are_left() {
        let vxlan = |port| end(TunnelHeader::Vxlan { port, vni: 7 }, false).wrap(&segment(), 0);
        let mut fragment = vxlan(4789);
        fragment[ETHERNET_BYTES + 6] = 0x20;
        for frame in [segment(), fragment, vxlan(53)] {
            let mut packet = packet(frame.clone());
            assert_eq!((open(&mut packet), packet.frame), (None, frame));
        }
    }

    #[test]
    fn the_innermost_tag_stays() {
        let plain = segment();
        let tagged = |tags: &[[u8; 4]]| [&plain[..12], &tags.concat(), &plain[12..]].concat();
        let [outer, service, inner] = [[0x81, 0, 0, 9], [0x88, 0xa8, 0, 8], [0x81, 0, 0, 7]];
        for (tags, left) in [
            (vec![], vec![]),
            (vec![inner], vec![inner]),
            (vec![outer, inner], vec![inner]),
            (vec![service, outer, inner], vec![inner]),
            (vec![service], vec![[0x81, 0, 0, 8]]),
        ] {
            let mut packet = packet(tagged(&tags));
            strip_outer_tags(&mut packet);
            assert_eq!(packet.frame, tagged(&left), "{tags:?}");
            assert_eq!(packet.frame_bytes, packet.frame.len() + 100);
        }
    }
}
