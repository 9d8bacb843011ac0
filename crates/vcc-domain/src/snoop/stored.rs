//! A segment that the port keeps for its guest, and what it says when the guest gets it.

use std::num::NonZeroU8;

use vcc_engine::{FlowState, Hold, sys};

use crate::checksum::Sum;
use crate::frame::{Direction, Frame};
use crate::hold::{cut, set_seq, without_payload};
use crate::parse::{Parsed, parse};
use crate::rewrite::rewrite_header;
use crate::spare::Spare;
use vcc_net::wire::*;

/// What a stored segment costs in addition to its frame.
const BESIDE_A_FRAME_BYTES: u32 = size_of::<Stored>() as u32;

/// A segment that is kept. Its headers are read once, as it may be given to the guest several times.
#[derive(Clone)]
pub(crate) struct Stored {
    pub seq: u32,
    pub end: u32,
    header: Header,
    frame: Frame,
}

impl Stored {
    #[inline]
    pub(crate) fn new(mut frame: Frame, parsed: &Parsed) -> Self {
        frame.shrink_to_keep();
        let seq = parsed.segment.seq;
        let end = seq.wrapping_add(parsed.segment.payload_bytes);
        Stored { seq, end, header: Header::from_parsed(parsed), frame }
    }

    /// The bytes of the port's limit that it takes.
    pub(crate) fn charge_bytes(&self) -> u32 {
        self.frame.bytes.len() as u32 + BESIDE_A_FRAME_BYTES
    }

    pub(crate) fn frame(&self) -> &Frame {
        &self.frame
    }

    pub(crate) fn into_frame(self) -> Frame {
        self.frame
    }

    /// The payload of its full segments.
    pub(crate) fn seg_bytes(&self) -> u32 {
        match self.frame.gso_size {
            0 => self.end.wrapping_sub(self.seq),
            size => size.into(),
        }
    }

    /// Cuts off what is before `at`, and returns it.
    pub(crate) fn cut(&mut self, at: u32) -> Option<Stored> {
        let parsed = parse(&self.frame, Direction::ToGuest).ok()?;
        let first_bytes = at.wrapping_sub(self.seq);
        let frame = cut(&mut self.frame, &parsed, first_bytes as usize);
        let first = Stored { frame, end: at, ..*self };
        self.seq = at;
        Some(first)
    }

    /// With what its sender would say now, for the guest to get for the first time: marks and CWR
    /// included.
    pub(crate) fn first(&self, current: &Current, spare: &mut Spare, to_guest: &mut Vec<Frame>) {
        // The bytes come last: what is moved behind them waits until they are all in the cache.
        let bytes = spare.memory_of(self.frame.bytes.len());
        to_guest.push(Frame { bytes, ..self.frame });
        let Some(copy) = to_guest.last_mut() else { return };
        copy.bytes.extend_from_slice(&self.frame.bytes);
        self.header.renew(&self.frame, copy, current, true);
    }

    /// As a retransmission: without CWR and CE, which the guest has perhaps seen (RFC 3168, 6.1.5).
    pub(crate) fn again(&self, current: &Current) -> Frame {
        let mut copy = self.frame.clone();
        self.header.renew(&self.frame, &mut copy, current, false);
        if let Ok(Parsed { ip, .. }) = parse(&copy, Direction::ToGuest)
            && u32::from(ip.ecn) == sys::IP_ECN_CE
        {
            ip.rewrite(&mut copy.bytes, sys::IP_ECN_ECT_0 as u8, ip.length);
        }
        copy
    }
}

/// Where a segment's TCP header is, and its TSval in it.
#[derive(Clone, Copy)]
struct Header {
    tcp_at: u16,
    bytes: u8,
    timestamps_at: Option<NonZeroU8>,
}

impl Header {
    fn from_parsed(parsed: &Parsed) -> Self {
        Header {
            tcp_at: parsed.ip.tcp_at as u16,
            bytes: parsed.header_bytes as u8,
            timestamps_at: parsed.places.timestamps_at,
        }
    }

    /// Writes into a copy of the frame what the peer would say now, with a TSval that passes PAWS. Only the
    /// words that change are summed (RFC 1624, 3), and the frame is read, not the copy: to load what has
    /// just been copied there takes longer than all else here.
    fn renew(self, frame: &Frame, copy: &mut Frame, current: &Current, keeps_cwr: bool) {
        let header = usize::from(self.tcp_at)..usize::from(self.tcp_at) + usize::from(self.bytes);
        let (was, is) = (&frame.bytes[header.clone()], &mut copy.bytes[header]);
        let mut sum = Sum::MINUS_ZERO.with(!read_u16(was, TCP_CHECK_AT));
        if let Some((ack, window)) = current.ack {
            sum = sum.with_u32(!read_u32(was, TCP_ACK_AT)).with_u32(ack);
            sum = sum.with(!read_u16(was, TCP_WINDOW_AT)).with(window);
            write_u32(is, TCP_ACK_AT, ack);
            write_u16(is, TCP_WINDOW_AT, window);
        }
        if !keeps_cwr {
            let word = read_u16(was, TCP_OFFSET_FLAGS_AT);
            let without = word & !(sys::TCP_CWR as u16);
            sum = sum.with(!word).with(without);
            write_u16(is, TCP_OFFSET_FLAGS_AT, without);
        }
        if let Some(at) = self.timestamps_at.map(|at| usize::from(at.get())) {
            let tsvals = [!read_u32(was, at), current.tsval];
            // At an odd place, each byte counts in the other half of a word (RFC 1071, 2 (B)).
            let [was_not, now] = tsvals.map(|tsval| tsval.rotate_left(8 * (at as u32 % 2)));
            sum = sum.with_u32(was_not).with_u32(now);
            write_u32(is, at, current.tsval);
        }
        if copy.checksum.is_complete() {
            // A partial one does not cover the header.
            write_u16(is, TCP_CHECK_AT, sum.checksum());
        }
    }
}

/// The fields of a segment that the peer would send now.
#[derive(Clone, Copy)]
pub(crate) struct Current {
    ack: Option<(u32, u16)>,
    tsval: u32,
}

impl Current {
    /// Its acknowledgement as the guest was shown it.
    pub(crate) fn new(flow: &FlowState, hold: &Hold, ts_recent: u32) -> Self {
        let ack = (hold.split_ack(flow.snd_una), flow.window_shown);
        Current { ack: flow.has(sys::FLOW_WINDOW_SHOWN).then_some(ack), tsval: ts_recent }
    }
}

/// A segment without data with what its sender would say now.
pub(crate) fn renewed(frame: &Frame, current: &Current) -> Frame {
    let mut copy = frame.clone();
    if let Ok(parsed) = parse(frame, Direction::ToGuest) {
        Header::from_parsed(&parsed).renew(frame, &mut copy, current, true);
    }
    copy
}

/// The headers of a segment to the guest, without its payload and at another sequence number.
pub(crate) fn emptied(frame: &Frame, seq: u32) -> Frame {
    let Ok(parsed) = parse(frame, Direction::ToGuest) else { return frame.clone() };
    let mut empty = without_payload(frame, &parsed);
    if let Ok(mut parsed) = parse(&empty, Direction::ToGuest) {
        set_seq(&mut empty, &mut parsed, seq);
    }
    empty
}

/// What a segment that does not reach the guest says besides its data. At the guest's next sequence
/// number, a newer timestamp than the guest may have had would have it discard data that was overtaken
/// (RFC 7323, 5.3).
pub(crate) fn moved(frame: &Frame, seq: u32, ts_recent: u32) -> Frame {
    let mut frame = emptied(frame, seq);
    let Ok(parsed) = parse(&frame, Direction::ToGuest) else { return frame };
    if let Some(at) = parsed.timestamps_at() {
        rewrite_header(&mut frame, &parsed, |frame| {
            write_u32(&mut frame.bytes, at, ts_recent);
            parsed.header_bytes
        });
    }
    frame
}

#[cfg(test)]
mod tests {
    use vcc_frames::{Packet, payload};
    use vcc_net::wire::TCP_FLAGS_MASK;

    use super::*;
    use crate::testing::{Talk, complete, framed, is_right, make_partial};

    const CURRENT: Current = Current { ack: Some((0x0102_0304, 777)), tsval: 0xdead_beef };
    const CWR: u16 = sys::TCP_CWR as u16;
    const CE: u8 = sys::IP_ECN_CE as u8;
    /// TSval at each offset within a word.
    const OPTIONS: [&[u8]; 5] = [
        &[],
        &[1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 8],
        &[8, 10, 0, 0, 0, 9, 0, 0, 0, 8, 1, 1],
        &[1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 8, 1],
        &[1, 1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 8, 1, 1, 1],
    ];

    fn parsed(frame: &Frame) -> Parsed {
        parse(frame, Direction::ToGuest).expect("TCP")
    }

    fn first(stored: &Stored) -> Frame {
        let mut to_guest = Vec::new();
        stored.first(&CURRENT, &mut Spare::default(), &mut to_guest);
        to_guest.remove(0)
    }

    fn stored(frame: Frame) -> Stored {
        let parsed = parsed(&frame);
        Stored::new(frame, &parsed)
    }

    fn segment(talk: &Talk, options: &[u8]) -> Packet {
        Packet {
            payload: payload(1001),
            options: options.to_vec(),
            traffic_class: CE,
            flags: crate::testing::ACK | CWR,
            ..talk.segment(false)
        }
    }

    fn is_renewed(before: &Frame, now: &Frame, flags: u16, ip_ecn: u8) {
        let (was, is) = (parsed(before), parsed(now));
        let (then, segment) = (&was.segment, &is.segment);
        assert_eq!((segment.ack, segment.window), (0x0102_0304, 777));
        assert_eq!(segment.tsval, if is.places.timestamps_at.is_some() { 0xdead_beef } else { 0 });
        assert_eq!((segment.seq, segment.payload_bytes), (then.seq, then.payload_bytes));
        assert_eq!((segment.flags & TCP_FLAGS_MASK, segment.ip_ecn), (flags, ip_ecn));
        assert_eq!(now.bytes[is.header_end()..], before.bytes[was.header_end()..]);
        let is_partial = now.checksum == crate::frame::Checksum::Partial;
        assert!(is_right(&if is_partial { complete(now.clone()) } else { now.clone() }));
    }

    #[test]
    fn a_stored_segment_says_what_its_sender_would_say_now() {
        for talk in [Talk::v4(), Talk::v6()] {
            for options in OPTIONS {
                let whole = framed(&segment(&talk, options));
                for frame in [make_partial(whole.clone()), whole] {
                    let stored = stored(frame.clone());
                    let flags = crate::testing::ACK;
                    is_renewed(&frame, &first(&stored), flags | CWR, CE);
                    is_renewed(&frame, &stored.again(&CURRENT), flags, sys::IP_ECN_ECT_0 as u8);
                    assert_eq!(stored.frame(), &frame, "the copy stays");
                }
            }
        }
    }

    #[test]
    fn what_is_cut_is_two_stored_segments() {
        let talk = Talk::v4();
        let frame = Frame { gso_size: 300, ..framed(&segment(&talk, OPTIONS[1])) };
        let mut rest = stored(frame.clone());
        let seq = rest.seq;
        let begin = rest.cut(seq.wrapping_add(600)).expect("a segment");
        for (part, seq, bytes) in [(&begin, seq, 600), (&rest, seq.wrapping_add(600), 401)] {
            let read = parsed(part.frame());
            let numbers = (part.seq, part.end.wrapping_sub(part.seq), part.seg_bytes());
            assert_eq!(numbers, (seq, bytes, 300));
            assert_eq!((read.segment.seq, read.segment.payload_bytes), (seq, bytes));
            let given = first(part);
            assert_eq!(parsed(&given).segment.tsval, 0xdead_beef);
            assert!(is_right(&given));
        }
    }
}
