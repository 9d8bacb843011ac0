//! Link types, and their packets as Ethernet frames, which ports read.

use vcc_net::wire::{ETHERNET_BYTES, ETHERTYPE_IPV4, ETHERTYPE_IPV6, read_u16, read_u32};

/// For messages.
pub(crate) const READ: &str =
    "vcc reads Ethernet, Linux cooked (v1 and v2), raw IP, and null or loopback";

const COOKED_BYTES: usize = 16;
const COOKED2_BYTES: usize = 20;
const NULL_BYTES: usize = 4;

/// <https://www.tcpdump.org/linktypes.html>
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Ethernet,
    Raw,
    /// An address family in front of the packet, in an unknown byte order.
    Null,
    Cooked,
    Cooked2,
}

impl Link {
    /// None for any that is not read.
    pub(crate) fn from_number(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::Ethernet),
            0 | 108 => Some(Self::Null),
            // Those of BSD systems, and LINKTYPE_RAW, _IPV4 and _IPV6.
            12 | 14 | 101 | 228 | 229 => Some(Self::Raw),
            113 => Some(Self::Cooked),
            276 => Some(Self::Cooked2),
            _ => None,
        }
    }

    /// The bytes in front of IP, or of a VLAN tag's control information.
    fn header_bytes(self) -> usize {
        match self {
            Self::Ethernet => ETHERNET_BYTES,
            Self::Raw => 0,
            Self::Null => NULL_BYTES,
            Self::Cooked => COOKED_BYTES,
            Self::Cooked2 => COOKED2_BYTES,
        }
    }

    /// Writes the packet as an Ethernet frame without addresses, as far as it was captured.
    pub(crate) fn write_frame(self, packet: &[u8], frame: &mut Vec<u8>) {
        frame.clear();
        if self == Self::Ethernet {
            frame.extend_from_slice(packet);
            return;
        }
        let Some((header, ip)) = packet.split_at_checked(self.header_bytes()) else { return };
        let ethertype = match self {
            Self::Cooked => read_u16(header, COOKED_BYTES - 2),
            Self::Cooked2 => read_u16(header, 0),
            // The version is certain; the numbers of address families differ between systems.
            _ => match ip.first().map(|first| first >> 4) {
                Some(4) => ETHERTYPE_IPV4,
                Some(6) => ETHERTYPE_IPV6,
                _ => 0,
            },
        };
        frame.resize(ETHERNET_BYTES - 2, 0);
        frame.extend(ethertype.to_be_bytes());
        frame.extend_from_slice(ip);
    }

    /// The size of the frame for a packet of this size.
    pub(crate) fn frame_bytes(self, packet_bytes: usize) -> usize {
        (packet_bytes + ETHERNET_BYTES).saturating_sub(self.header_bytes())
    }

    /// The device that the packet was captured at, where each packet has it.
    pub(crate) fn device(self, packet: &[u8]) -> Option<u32> {
        (self == Self::Cooked2 && packet.len() >= COOKED2_BYTES).then(|| read_u32(packet, 4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_become_frames() {
        let v4 = [0x45, 1, 2, 3];
        let framed = |ethertype: [u8; 2], rest: &[u8]| [&[0; 12][..], &ethertype, rest].concat();
        let packet = |header: &[u8]| [header, &v4].concat();
        let cooked = |ethertype: [u8; 2]| packet(&[&[0; 14][..], &ethertype].concat());
        let cooked2 = packet(&[8, 0, 0, 0, 0, 0, 0, 7, 0, 1, 4, 6, 1, 1, 1, 1, 1, 1, 0, 0]);
        for (number, packet, frame) in [
            (1, framed([8, 0], &v4), framed([8, 0], &v4)),
            (101, v4.to_vec(), framed([8, 0], &v4)),
            (229, vec![0x60], framed([0x86, 0xdd], &[0x60])),
            (0, packet(&[2, 0, 0, 0]), framed([8, 0], &v4)),
            (108, packet(&[0, 0, 0, 2]), framed([8, 0], &v4)),
            (113, cooked([8, 0]), framed([8, 0], &v4)),
            // A tag's control information and the type behind it follow.
            (113, cooked([0x81, 0]), framed([0x81, 0], &v4)),
            (276, cooked2.clone(), framed([8, 0], &v4)),
        ] {
            let link = Link::from_number(number).expect("a link type");
            let mut written = vec![9];
            link.write_frame(&packet, &mut written);
            assert_eq!(written, frame, "{number}");
            assert_eq!(link.frame_bytes(packet.len()), frame.len(), "{number}");
        }
        assert_eq!(Link::Cooked2.device(&cooked2), Some(7));
        let mut written = vec![9];
        Link::Cooked.write_frame(&[0; 15], &mut written);
        assert_eq!(written, [0; 0], "a header that was cut");
        assert_eq!(Link::from_number(105), None);
    }
}
