//! Cuts a frame in two, as TCP would have sent them.

use vcc_engine::sys;

use crate::checksum;
use crate::frame::{Checksum, Direction, Frame};
use crate::parse::{Parsed, parse};
use vcc_net::wire::*;

const IPV4_ID_AT: usize = 4;

/// Cuts off the first `payload_bytes` of the frame's payload and returns them with its headers: FIN
/// and PSH stay on the rest, CWR on what is cut off (Linux: tcp_gso_segment; RFC 3168, 6.1.2), and
/// IPv4 identifications continue. A wrong checksum stays wrong.
pub(crate) fn cut(frame: &mut Frame, parsed: &Parsed, payload_bytes: usize) -> Frame {
    debug_assert!(payload_bytes <= parsed.segment.payload_bytes as usize);
    let payload_at = parsed.header_end();
    let error = Error::find(frame, parsed);
    let segments = match frame.gso_size {
        0 => 1,
        size => payload_bytes.div_ceil(size.into()) as u16,
    };
    let mut first = Frame { bytes: frame.bytes[..payload_at + payload_bytes].to_vec(), ..*frame };
    let end = parsed.ip.tcp_at + parsed.ip.tcp_bytes;
    frame.bytes.truncate(end);
    frame.bytes.drain(payload_at..payload_at + payload_bytes);

    let seq = parsed.segment.seq.wrapping_add(payload_bytes as u32);
    write_u32(&mut frame.bytes, parsed.ip.tcp_at + TCP_SEQ_AT, seq);
    clear_flags(frame, parsed, sys::TCP_CWR);
    point_urgent(frame, parsed, payload_bytes);
    clear_flags(&mut first, parsed, sys::TCP_FIN | sys::TCP_PSH);
    count_on(frame, parsed, segments);
    for part in [&mut first, frame] {
        fit(part, parsed);
        error.sum(part, parsed);
    }
    first
}

impl Frame {
    /// Cuts off the first segment of a super-segment of TCP, as [`cut`] does. None for others.
    pub fn cut_first(&mut self) -> Option<Frame> {
        // The direction decides which end is the guest, and no more.
        let parsed = parse(self, Direction::FromGuest).ok()?;
        let first_bytes = parsed.segment.seg_bytes;
        (first_bytes > 0).then(|| cut(self, &parsed, first_bytes as usize))
    }
}

/// The frame's headers, as an empty ACK.
pub(crate) fn without_payload(frame: &Frame, parsed: &Parsed) -> Frame {
    let error = Error::find(frame, parsed);
    let bytes = frame.bytes[..parsed.header_end()].to_vec();
    let mut empty = Frame { bytes, ..*frame };
    clear_flags(&mut empty, parsed, sys::TCP_FIN | sys::TCP_PSH | sys::TCP_CWR);
    fit(&mut empty, parsed);
    error.sum(&mut empty, parsed);
    empty
}

fn clear_flags(frame: &mut Frame, parsed: &Parsed, flags: u32) {
    let at = parsed.ip.tcp_at + TCP_OFFSET_FLAGS_AT;
    let word = read_u16(&frame.bytes, at);
    write_u16(&mut frame.bytes, at, word & !(flags as u16));
}

/// Lets the urgent pointer, which counts from the sequence number, point to the same byte (RFC 9293,
/// 3.1), behind the last urgent one in practice (RFC 6093, 3.1).
fn point_urgent(frame: &mut Frame, parsed: &Parsed, cut_bytes: usize) {
    let at = parsed.ip.tcp_at + TCP_URGENT_AT;
    match usize::from(read_u16(&frame.bytes, at)).checked_sub(cut_bytes) {
        Some(urgent) if urgent > 0 => write_u16(&mut frame.bytes, at, urgent as u16),
        _ => {
            write_u16(&mut frame.bytes, at, 0);
            clear_flags(frame, parsed, sys::TCP_URG);
        }
    }
}

/// Advances the IPv4 identification behind that of `segments` before.
fn count_on(frame: &mut Frame, parsed: &Parsed, segments: u16) {
    if parsed.ip.ipv6 {
        return;
    }
    let ip = &mut frame.bytes[parsed.ip.at..parsed.ip.tcp_at];
    let before = [ip[IPV4_ID_AT], ip[IPV4_ID_AT + 1]];
    let id = read_u16(ip, IPV4_ID_AT).wrapping_add(segments);
    write_u16(ip, IPV4_ID_AT, id);
    let check = checksum::updated(read_u16(ip, IPV4_CHECK_AT), &before, &id.to_be_bytes());
    write_u16(ip, IPV4_CHECK_AT, check);
}

/// Sets the IP length to the frame's. A payload of one segment is no super-segment.
fn fit(frame: &mut Frame, parsed: &Parsed) {
    let tcp_bytes = frame.bytes.len() - parsed.ip.tcp_at;
    if tcp_bytes - parsed.header_bytes <= frame.gso_size.into() {
        frame.gso_size = 0;
    }
    // BIG TCP: the length of a super-segment above 64 KiB is 0 (RFC 2675).
    let big = parsed.ip.tcp_at - parsed.ip.at + tcp_bytes > u16::MAX.into();
    let length = if big { 0 } else { parsed.ip.length_of(tcp_bytes) };
    parsed.ip.rewrite(&mut frame.bytes, parsed.ip.ecn, length);
}

/// How far a full checksum is off, in one's complement.
struct Error {
    right: u16,
    found: u16,
}

impl Error {
    fn find(frame: &Frame, parsed: &Parsed) -> Self {
        let tcp = &frame.bytes[parsed.ip.tcp_at..];
        let found = read_u16(tcp, TCP_CHECK_AT);
        match frame.checksum {
            Checksum::Full | Checksum::Verified => Error { right: right(frame, parsed), found },
            Checksum::Partial => Error { right: found, found },
        }
    }

    /// Writes the checksum of a part.
    fn sum(&self, frame: &mut Frame, parsed: &Parsed) {
        let tcp_bytes = frame.bytes.len() - parsed.ip.tcp_at;
        if !frame.checksum.is_complete() {
            let tcp = &mut frame.bytes[parsed.ip.tcp_at..];
            let before_bytes = parsed.ip.tcp_bytes as u32;
            checksum::tcp_length_changed(Checksum::Partial, tcp, before_bytes, tcp_bytes as u32);
            return;
        }
        let mut check = right(frame, parsed);
        if self.right != self.found {
            check = checksum::updated(check, &self.found.to_be_bytes(), &self.right.to_be_bytes());
        }
        write_u16(&mut frame.bytes, parsed.ip.tcp_at + TCP_CHECK_AT, check);
    }
}

/// The checksum that the frame's TCP should have.
fn right(frame: &Frame, parsed: &Parsed) -> u16 {
    let end = frame.bytes.len().min(parsed.ip.tcp_at + parsed.ip.tcp_bytes);
    let mut tcp = frame.bytes[parsed.ip.tcp_at..end].to_vec();
    write_u16(&mut tcp, TCP_CHECK_AT, 0);
    parsed.tcp_checksum(&tcp)
}

#[cfg(test)]
mod tests {
    use vcc_frames::{Packet, payload};

    use super::*;
    use crate::testing::{ACK, Talk, complete, framed, is_right, make_partial};

    const FIN: u16 = sys::TCP_FIN as u16;
    const PSH: u16 = sys::TCP_PSH as u16;
    const CWR: u16 = sys::TCP_CWR as u16;

    fn parsed(frame: &Frame) -> Parsed {
        parse(frame, Direction::FromGuest).expect("TCP")
    }

    fn segment(v6: bool) -> Packet {
        let talk = if v6 { Talk::v6() } else { Talk::v4() };
        Packet {
            payload: payload(1001),
            flags: ACK | FIN | PSH | CWR,
            seq: 0xffff_fff0,
            ipv4_id: 0xffff,
            ..talk.segment(true)
        }
    }

    #[test]
    fn both_parts_are_segments_of_their_own() {
        for (v6, partial) in [(false, false), (false, true), (true, false), (true, true)] {
            for at in [0, 1, 300, 600, 1000, 1001] {
                let mut rest = Frame { gso_size: 300, ..framed(&segment(v6)) };
                if partial {
                    rest = make_partial(rest);
                }
                rest.bytes.extend([0xa5; 3]);
                let whole = parsed(&rest);
                let first = cut(&mut rest, &whole, at);
                let (a, b) = (parsed(&first), parsed(&rest));
                assert_eq!(a.key, whole.key);
                assert_eq!(
                    (a.segment.seq, b.segment.seq),
                    (0xffff_fff0, 0xffff_fff0_u32.wrapping_add(at as u32))
                );
                assert_eq!((a.segment.flags, b.segment.flags), (ACK | CWR, ACK | FIN | PSH));
                assert_eq!(a.segment.payload_bytes as usize, at);
                let all = [&first.bytes[a.header_end()..], &rest.bytes[b.header_end()..]].concat();
                assert_eq!(all, payload(1001));
                assert_eq!((first.gso_size > 0, rest.gso_size > 0), (at > 300, 1001 - at > 300));
                if !v6 {
                    let id = read_u16(&rest.bytes, ETHERNET_BYTES + IPV4_ID_AT);
                    assert_eq!(id, 0xffff_u16.wrapping_add(at.div_ceil(300) as u16));
                    for part in [&first, &rest] {
                        assert_eq!(checksum::compute(&[&part.bytes[14..34]]), 0, "IPv4's checksum");
                    }
                }
                for part in [first, rest] {
                    assert!(is_right(&if partial { complete(part) } else { part }), "{at}");
                }
            }
        }
    }

    #[test]
    fn the_first_segment_keeps_cwr() {
        for v6 in [false, true] {
            let mut rest = make_partial(Frame { gso_size: 400, ..framed(&segment(v6)) });
            let first = rest.cut_first().expect("a super-segment");
            let (a, b) = (parsed(&first), parsed(&rest));
            assert_eq!((a.segment.payload_bytes, a.segment.flags), (400, ACK | CWR));
            assert_eq!((b.segment.payload_bytes, b.segment.flags), (601, ACK | FIN | PSH));
            assert_eq!((first.gso_size, rest.gso_size), (0, 400));
            assert_eq!(rest.cut_first().map(|first| first.gso_size), Some(0));
            assert_eq!(rest.cut_first(), None, "one segment is left");
        }
    }

    #[test]
    fn the_headers_alone_are_an_empty_ack() {
        for (v6, partial) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut whole = Frame { gso_size: 300, ..framed(&segment(v6)) };
            if partial {
                whole = make_partial(whole);
            }
            let empty = without_payload(&whole, &parsed(&whole));
            let Parsed { segment, .. } = parsed(&empty);
            assert_eq!((segment.flags, segment.payload_bytes, empty.gso_size), (ACK, 0, 0));
            assert!(is_right(&if partial { complete(empty) } else { empty }));
        }
    }

    #[test]
    fn a_wrong_checksum_stays_wrong() {
        let mut rest = framed(&segment(false));
        rest.bytes[200] ^= 0x10;
        let whole = parsed(&rest);
        let first = cut(&mut rest, &whole, 500);
        assert!(!is_right(&first) && !is_right(&rest));
    }
}
