//! Parses a frame into the engine's segment and the flow's key. Never modifies the frame.

use vcc_engine::{FlowKey, Segment, TcpLayout};

use crate::checksum;
use crate::counters::Reason;
use crate::frame::{Direction, Frame};
use crate::ip::{self, Ip};
use crate::link;
use crate::options::Places;
use vcc_net::wire::*;

/// A well-formed TCP segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parsed {
    pub key: FlowKey,
    pub ip: Ip,
    /// The engine's segment, without the time.
    pub segment: Segment,
    pub header_bytes: usize,
    pub places: Places,
}

impl Parsed {
    /// Offset of the TCP header's end from the frame's start.
    pub(crate) fn header_end(&self) -> usize {
        self.ip.tcp_at + self.header_bytes
    }

    /// Size of the IP and TCP headers.
    pub(crate) fn headers_bytes(&self) -> usize {
        self.header_end() - self.ip.at
    }

    /// Offset of TSval from the frame's start; TSecr follows it.
    pub(crate) fn timestamps_at(&self) -> Option<usize> {
        self.places.timestamps_at.map(|at| self.ip.tcp_at + usize::from(at.get()))
    }

    /// The SACK option, kind and length included: its offset from the frame's start and its size.
    pub(crate) fn sack_at(&self) -> Option<(usize, usize)> {
        let (at, bytes) = self.places.sack_at?;
        Some((self.ip.tcp_at + usize::from(at.get()), bytes.into()))
    }

    /// The checksum of `tcp` with the pseudo-header, which is the same in both directions.
    pub(crate) fn tcp_checksum(&self, tcp: &[u8]) -> u16 {
        let key = self.key.as_raw();
        checksum::of_tcp(&key.guest_addr, &key.peer_addr, tcp)
    }

    /// TSval and TSecr, if the segment has timestamps.
    #[inline]
    pub(crate) fn timestamps(&self) -> Option<[u32; 2]> {
        self.places.timestamps_at.map(|_| [self.segment.tsval, self.segment.tsecr])
    }

    #[inline]
    pub(crate) fn tsval(&self) -> Option<u32> {
        self.timestamps().map(|[tsval, _]| tsval)
    }
}

/// # Errors
/// The reason why the frame is not translated.
pub(crate) fn parse(frame: &Frame, direction: Direction) -> Result<Parsed, Reason> {
    let mut parsed = Parsed::default();
    parse_into(frame, direction, &mut parsed)?;
    Ok(parsed)
}

/// [`parse`] in place: to move what has just been written field by field costs as much as to parse it.
/// `parsed` is new, and of no use after an error.
#[inline]
pub(crate) fn parse_into(
    frame: &Frame,
    direction: Direction,
    parsed: &mut Parsed,
) -> Result<(), Reason> {
    parse_either::<false>(frame, direction, parsed)
}

/// The part of a segment in the first fragment. None: it is a later one, or no header is whole.
pub(crate) fn parse_first_fragment(frame: &Frame, direction: Direction) -> Option<Parsed> {
    let mut parsed = Parsed::default();
    parse_either::<true>(frame, direction, &mut parsed).ok()?;
    Some(parsed)
}

#[inline]
fn parse_either<const FRAGMENT: bool>(
    frame: &Frame,
    direction: Direction,
    parsed: &mut Parsed,
) -> Result<(), Reason> {
    let link = link::parse(&frame.bytes)?;
    let (ip, [source, destination]) = ip::parse::<FRAGMENT>(frame, &link)?;
    let tcp = frame.bytes.get(ip.tcp_at..).unwrap_or_default();
    let tcp = tcp.get(..ip.tcp_bytes).unwrap_or(tcp);
    let mut layout = TcpLayout::default();
    vcc_engine::parse_tcp(tcp, frame.gso_size, &mut parsed.segment, &mut layout)?;
    parsed.segment.ip_ecn = ip.ecn;
    let sender = (source, read_u16(tcp, 0));
    let receiver = (destination, read_u16(tcp, 2));
    parsed.key = match direction {
        Direction::FromGuest => FlowKey::from_parts(sender, receiver, link.vlan),
        Direction::ToGuest => FlowKey::from_parts(receiver, sender, link.vlan),
    };
    parsed.header_bytes = layout.header_bytes.into();
    parsed.places = Places::from(&layout);
    parsed.ip = ip;
    Ok(())
}

#[cfg(test)]
mod tests {
    use vcc_engine::sys;
    use vcc_frames::{Packet, payload};

    use super::*;
    use crate::testing::{ACK, Talk, framed};

    #[test]
    fn a_flow_has_one_key_in_both_directions() {
        for talk in [Talk::v4(), Talk::v6()] {
            let up = parse(&framed(&talk.segment(true)), Direction::FromGuest).expect("TCP");
            let down = parse(&framed(&talk.segment(false)), Direction::ToGuest).expect("TCP");
            assert_eq!((up.key, down.key), (talk.key(), talk.key()));
        }
    }

    #[test]
    fn the_segment_has_the_headers_values() {
        let tcp = Packet {
            window: 77,
            options: vec![1, 1, 3, 3, 9, 1, 1, 1],
            traffic_class: 2,
            ..Talk::v6().segment(true)
        };
        let Parsed { segment, header_bytes, .. } =
            parse(&framed(&tcp), Direction::FromGuest).expect("TCP");
        assert_eq!((segment.seq, segment.ack, segment.window), (tcp.seq, tcp.ack, 77));
        assert_eq!((segment.flags, segment.ip_ecn, segment.wscale), (ACK, 2, 9));
        assert_eq!((header_bytes, segment.option_room_bytes), (28, 32));
        let data = Packet { payload: payload(200), ..tcp };
        for (gso_size, seg_bytes) in [(0, 0), (100, 100), (200, 0), (300, 0)] {
            let frame = Frame { gso_size, ..framed(&data) };
            let Parsed { segment, .. } = parse(&frame, Direction::FromGuest).expect("TCP");
            assert_eq!((segment.payload_bytes, segment.seg_bytes), (200, seg_bytes));
            assert_eq!(segment.option_room_bytes, 0, "no room before payload");
        }
    }

    #[test]
    fn insane_flags_are_refused() {
        for flags in 0..=TCP_FLAGS_MASK {
            let [syn, rst, ack] = [1, 2, 4].map(|bit| flags >> bit & 1 == 1);
            let sane = if syn { !rst } else { ack || rst };
            let frame = framed(&Packet { flags, ..Talk::v4().segment(true) });
            let refused = parse(&frame, Direction::FromGuest).err();
            assert_eq!(refused, (!sane).then_some(sys::COUNT_BAD_FLAGS), "{flags:#x}");
        }
    }

    #[test]
    fn truncated_headers_are_refused() {
        let whole = framed(&Packet { options: vec![1; 8], ..Talk::v4().segment(true) });
        let refused = |frame: &Frame| parse(frame, Direction::FromGuest).err();
        assert_eq!(refused(&whole), None);
        for length in 14..whole.bytes.len() {
            let cut = Frame::full(whole.bytes[..length].to_vec());
            assert_eq!(refused(&cut), Some(sys::COUNT_MALFORMED), "{length} bytes");
        }
        for words in [0, 4, 8, 15] {
            let mut frame = whole.clone();
            frame.bytes[34 + TCP_OFFSET_FLAGS_AT] = words << 4;
            assert_eq!(refused(&frame), Some(sys::COUNT_MALFORMED), "{words} words");
        }
    }
}
