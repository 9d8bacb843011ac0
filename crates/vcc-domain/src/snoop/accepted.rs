//! Connections that the port has accepted in the guest's name (`engine/accept.h`): how the guest answers
//! SYNs, and what its numbers differ by from those that the peer knows.

use vcc_engine::{FlowKey, sys};

use super::answer::headers_of;
use super::{Headers, is_sound};
use crate::frame::{Direction, Frame};
use crate::handover::{AcceptedRow, FrameRow, Frames};
use crate::parse::{Parsed, parse};
use crate::rewrite::rewrite_header;
use vcc_net::wire::*;

const KIND_END: u8 = 0;
const KIND_NOP: u8 = 1;
/// MSS, window scale, SACK-permitted, timestamps: what others mean to the guest is not known.
const KNOWN_KINDS: [u8; 4] = [2, 3, 4, 8];
const SACK_BLOCK_BYTES: usize = 8;

/// The guest is sent the SYN again after this time, which doubles (RFC 6298, 2.1 and 5.5).
const AGAIN_NS: u64 = 1_000_000_000;
/// A guest that has not answered by then does not listen (Linux as opener: tcp_syn_retries).
const ANSWERS_WITHIN_NS: u64 = 127_000_000_000;

/// What the port keeps of a connection that it has accepted.
#[derive(Clone, Default)]
pub(crate) enum Accepted {
    /// It has not.
    #[default]
    No,
    /// The guest has not answered the SYN yet.
    Waits(Box<Waits>),
    /// Both ends have a connection.
    Joined(Offsets),
    /// It ended before the guest had answered.
    Ended,
}

impl Accepted {
    /// Has the port accepted it, and not ended it before the guest answered?
    pub(crate) fn is_live(&self) -> bool {
        matches!(self, Accepted::Waits(_) | Accepted::Joined(_))
    }

    /// For another host.
    pub(super) fn row(&self, frames: &mut Frames) -> Option<AcceptedRow> {
        match self {
            Accepted::No | Accepted::Ended => None,
            Accepted::Joined(Offsets { seq, tsval }) => {
                Some(AcceptedRow::Joined { seq: *seq, tsval: *tsval })
            }
            Accepted::Waits(waits) => {
                let Terms { flags, options, wscale } = waits.terms;
                let syn = frames.push(&waits.syn);
                let ack = waits.ack.as_ref().map(|ack| frames.push(ack));
                Some(AcceptedRow::Waits { syn, ack, flags, options, wscale })
            }
        }
    }

    /// Of a guest that comes from another host; `take`: a frame to it on this connection. None: the row
    /// is inconsistent.
    pub(crate) fn from_row(
        now_ns: u64,
        row: AcceptedRow,
        mut take: impl FnMut(FrameRow) -> Option<Frame>,
    ) -> Option<Self> {
        match row {
            AcceptedRow::Joined { seq, tsval } => Some(Accepted::Joined(Offsets { seq, tsval })),
            AcceptedRow::Waits { syn, ack, flags, options, wscale } => {
                let terms = Terms { flags, options, wscale };
                let mut take_with = |row, flags: u32| {
                    let mask = sys::TCP_SYN | sys::TCP_ACK | sys::TCP_FIN | sys::TCP_RST;
                    let frame = take(row)?;
                    let Parsed { segment, .. } = parse(&frame, Direction::ToGuest).ok()?;
                    let is_such =
                        u32::from(segment.flags) & mask == flags && segment.payload_bytes == 0;
                    is_such.then_some(frame)
                };
                let syn = take_with(syn, sys::TCP_SYN)?;
                let mut waits = Waits::new(now_ns, syn, terms);
                if let Some(ack) = ack {
                    waits.ack = Some(take_with(ack, sys::TCP_ACK)?);
                }
                Some(Accepted::Waits(Box::new(waits)))
            }
        }
    }

    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self, Accepted::Waits(_))
    }

    pub(crate) fn offsets(&self) -> Option<Offsets> {
        match self {
            Accepted::Joined(offsets) => Some(*offsets),
            _ => None,
        }
    }

    /// When the guest is sent the SYN again, or given up.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        match self {
            Accepted::Waits(waits) => Some(waits.due_ns()),
            _ => None,
        }
    }

    /// The peer has ended the connection.
    pub(crate) fn end(&mut self) {
        if self.is_waiting() {
            *self = Accepted::Ended;
        }
    }
}

/// A connection whose SYN the guest has not answered.
#[derive(Clone)]
pub(crate) struct Waits {
    /// As the guest is shown it.
    pub syn: Frame,
    pub terms: Terms,
    /// The peer's last segment without data, which ends the guest's handshake.
    pub ack: Option<Frame>,
    pub since_ns: u64,
    pub sent_ns: u64,
    pub times: u32,
}

impl Waits {
    pub(crate) fn new(now_ns: u64, syn: Frame, terms: Terms) -> Self {
        Waits { syn, terms, ack: None, since_ns: now_ns, sent_ns: now_ns, times: 0 }
    }

    /// When the guest is sent the SYN again, or given up.
    pub(crate) fn due_ns(&self) -> u64 {
        self.sent_ns + (AGAIN_NS << self.times.min(6))
    }

    pub(crate) fn is_over(&self, now_ns: u64) -> bool {
        now_ns - self.since_ns >= ANSWERS_WITHIN_NS
    }
}

/// What the guest's sequence numbers and TSvals lack of those that the peer knows, modulo 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offsets {
    pub seq: u32,
    pub tsval: u32,
}

impl Offsets {
    /// Of a segment of the guest.
    pub(crate) fn adjust_from_guest(self, frame: &mut Frame, parsed: &mut Parsed) {
        let tcp_at = parsed.ip.tcp_at;
        let seq = parsed.segment.seq.wrapping_add(self.seq);
        let tsval = parsed.segment.tsval.wrapping_add(self.tsval);
        rewrite_header(frame, parsed, |frame| {
            write_u32(&mut frame.bytes, tcp_at + TCP_SEQ_AT, seq);
            if let Some(at) = parsed.timestamps_at() {
                write_u32(&mut frame.bytes, at, tsval);
            }
            parsed.header_bytes
        });
        parsed.segment.seq = seq;
        if parsed.timestamps_at().is_some() {
            parsed.segment.tsval = tsval;
        }
    }

    /// Of a segment to the guest: it acknowledges the guest's own numbers.
    pub(crate) fn adjust_to_guest(self, frame: &mut Frame, parsed: &Parsed) {
        if u32::from(parsed.segment.flags) & sys::TCP_ACK == 0 {
            return;
        }
        let (tcp_at, segment) = (parsed.ip.tcp_at, &parsed.segment);
        rewrite_header(frame, parsed, |frame| {
            let bytes = &mut frame.bytes;
            write_u32(bytes, tcp_at + TCP_ACK_AT, segment.ack.wrapping_sub(self.seq));
            if let Some(at) = parsed.timestamps_at() {
                write_u32(bytes, at + 4, segment.tsecr.wrapping_sub(self.tsval));
            }
            if let Some((at, length)) = parsed.sack_at() {
                let blocks = bytes[at + 2..at + length].chunks_exact_mut(SACK_BLOCK_BYTES);
                for edge in blocks.flat_map(|block| block.chunks_exact_mut(4)) {
                    let own = read_u32(edge, 0).wrapping_sub(self.seq);
                    write_u32(edge, 0, own);
                }
            }
            parsed.header_bytes
        });
    }

    /// Of the same segment, back to the peer's numbers.
    pub(crate) fn restore_to_guest(self, frame: &mut Frame, parsed: &Parsed) {
        let back = Offsets { seq: self.seq.wrapping_neg(), tsval: self.tsval.wrapping_neg() };
        back.adjust_to_guest(frame, parsed);
    }
}

/// What both ends have to agree on. The MSS is not among it: a guest takes longer segments, too, and may
/// announce another one on another path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    pub flags: u16,
    /// `enum vcc_option`.
    pub options: u16,
    pub wscale: u8,
}

impl Terms {
    /// Of a SYN or SYN-ACK; None: it has data, or options whose meaning is not known here.
    pub(crate) fn read(frame: &Frame, parsed: &Parsed) -> Option<Self> {
        let options = options_of(frame, parsed);
        let is_known = parsed.ip.is_plain()
            && !parsed.places.malformed
            && parsed.segment.payload_bytes == 0
            && has_known_kinds(options);
        is_known.then_some(Terms {
            flags: parsed.segment.flags,
            options: parsed.segment.options,
            wscale: parsed.segment.wscale,
        })
    }

    /// SYNs may have another scale, and get the same answer.
    pub(crate) fn shape(self) -> (u16, u16) {
        (self.flags, self.options)
    }
}

fn options_of<'frame>(frame: &'frame Frame, parsed: &Parsed) -> &'frame [u8] {
    &frame.bytes[parsed.ip.tcp_at + TCP_BYTES..parsed.header_end()]
}

fn has_known_kinds(mut options: &[u8]) -> bool {
    while let Some((&kind, rest)) = options.split_first() {
        match kind {
            KIND_END => return true,
            KIND_NOP => options = rest,
            _ => {
                let bytes = rest.first().map_or(0, |length| usize::from(*length));
                let Some(behind) = options.get(bytes..).filter(|_| bytes >= 2) else {
                    return false;
                };
                if !KNOWN_KINDS.contains(&kind) {
                    return false;
                }
                options = behind;
            }
        }
    }
    true
}

/// How the guest answers SYNs of this shape to one of its ports: its last SYN-ACK.
#[derive(Clone)]
pub(crate) struct Listener {
    pub shape: (u16, u16),
    pub terms: Terms,
    pub seen_ns: u64,
    headers: Headers,
    window: u16,
    options: Vec<u8>,
    /// Of TSval among the options.
    timestamps_at: Option<usize>,
}

/// The numbers of a SYN-ACK.
#[derive(Clone, Copy)]
pub(crate) struct Numbers {
    pub seq: u32,
    pub ack: u32,
    pub tsval: u32,
    pub tsecr: u32,
}

impl Listener {
    /// None: what the guest answers is not understood, or nothing may be said in its name: it echoes marks
    /// by itself (RFC 8257, 3.2; RFC 9768).
    pub(crate) fn read(
        now_ns: u64,
        shape: (u16, u16),
        frame: &Frame,
        parsed: &Parsed,
    ) -> Option<Self> {
        let terms = Terms::read(frame, parsed)?;
        let classic = sys::TCP_SYN | sys::TCP_ACK | sys::TCP_ECE;
        let echoes = u32::from(terms.flags) & !classic != 0
            || u32::from(parsed.ip.ecn) != sys::IP_ECN_NOT_ECT;
        if echoes {
            return None;
        }
        let mut headers = Headers::default();
        headers.note(frame, parsed);
        let options_at = parsed.ip.tcp_at + TCP_BYTES;
        Some(Listener {
            shape,
            terms,
            seen_ns: now_ns,
            headers,
            window: parsed.segment.window,
            options: options_of(frame, parsed).to_vec(),
            timestamps_at: parsed.timestamps_at().map(|at| at - options_at),
        })
    }

    /// Is the SYN addressed to this guest, on the link as well, and whole?
    pub(crate) fn is_for_it(&self, syn: &Frame, parsed: &Parsed) -> bool {
        is_sound(syn, parsed, &self.headers)
    }

    /// The SYN-ACK of this connection, to the one who sent the SYN.
    pub(crate) fn answer(&self, key: &FlowKey, syn: &Frame, numbers: Numbers) -> Option<Frame> {
        let mut options = self.options.clone();
        if let Some(at) = self.timestamps_at {
            write_u32(&mut options, at, numbers.tsval);
            write_u32(&mut options, at + 4, numbers.tsecr);
        }
        let mut headers = self.headers;
        headers.redirect(key, syn.bytes.get(MAC_BYTES..2 * MAC_BYTES)?);
        let tcp_bytes = TCP_BYTES + options.len();
        let mut bytes = headers_of(&headers, tcp_bytes);
        let tcp_at = bytes.len();
        bytes.resize(tcp_at + TCP_BYTES, 0);
        let tcp = &mut bytes[tcp_at..];
        write_u16(tcp, 0, key.guest().port());
        write_u16(tcp, 2, key.peer().port());
        write_u32(tcp, TCP_SEQ_AT, numbers.seq);
        write_u32(tcp, TCP_ACK_AT, numbers.ack);
        write_u16(tcp, TCP_OFFSET_FLAGS_AT, tcp_offset_flags(tcp_bytes, self.terms.flags));
        write_u16(tcp, TCP_WINDOW_AT, self.window);
        bytes.extend(options);
        let mut frame = Frame::full(bytes);
        let parsed = parse(&frame, Direction::FromGuest).ok()?;
        let check = parsed.tcp_checksum(&frame.bytes[tcp_at..]);
        write_u16(&mut frame.bytes, tcp_at + TCP_CHECK_AT, check);
        debug_assert!(parsed.key == *key && Terms::read(&frame, &parsed) == Some(self.terms));
        Some(frame)
    }
}

#[cfg(test)]
mod tests {
    use vcc_frames::Packet;

    use super::*;
    use crate::testing::{ACK, SYN, Talk, framed, is_right};

    const OPTIONS: [u8; 20] = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 8, 1, 3, 3, 7];

    fn parsed(frame: &Frame, direction: Direction) -> Parsed {
        parse(frame, direction).expect("TCP")
    }

    #[test]
    fn a_syn_is_answered_as_the_guest_answered_another() {
        for talk in [Talk::v4(), Talk::v6()] {
            let answer = Packet {
                flags: SYN | ACK,
                window: 777,
                options: OPTIONS.to_vec(),
                ..talk.segment(true)
            };
            let answer = framed(&answer);
            let shape = (SYN, 0);
            let read = parsed(&answer, Direction::FromGuest);
            let listener = Listener::read(0, shape, &answer, &read).expect("a known answer");
            let mut other = Talk { peer: talk.peer, ..talk };
            other.peer.set_port(4000);
            let syn = framed(&Packet { flags: SYN, ack: 0, ..other.segment(false) });
            let numbers = Numbers { seq: 5, ack: 6, tsval: 7, tsecr: 8 };
            let made = listener.answer(&other.key(), &syn, numbers).expect("a frame");
            assert!(is_right(&made));
            let Parsed { segment, key, .. } = parsed(&made, Direction::FromGuest);
            assert_eq!((segment.seq, segment.ack, segment.flags), (5, 6, SYN | ACK));
            assert_eq!((segment.tsval, segment.tsecr, segment.window), (7, 8, 777));
            assert_eq!((segment.mss, segment.wscale, key), (1460, 7, other.key()));
            assert_eq!(made.bytes[..6], syn.bytes[6..12], "to the sender of the SYN");
        }
    }

    #[test]
    fn what_is_not_understood_is_not_answered() {
        for (options, is_known) in [
            (&[2, 4, 5, 0xb4][..], true),
            (&[1, 3, 3, 7], true),
            (&[0, 99, 99, 99], true),
            (&[30, 4, 0, 0], false),
            (&[34, 2, 1, 1], false),
            (&[2, 1, 1, 1], false),
            (&[8, 10, 0, 0], false),
        ] {
            assert_eq!(has_known_kinds(options), is_known, "{options:?}");
        }
    }

    #[test]
    fn numbers_are_adjusted_and_restored() {
        let offsets = Offsets { seq: 0xffff_fff0, tsval: 100 };
        let sack = [[1, 1, 5, 18].as_slice(), &[0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 3, 0, 0, 0, 4]];
        let stamps = [1, 1, 8, 10, 0, 0, 0, 50, 0, 0, 0, 60];
        for (options, from_guest) in [
            (vec![], false),
            (stamps.to_vec(), false),
            ([&stamps[..], &sack.concat()].concat(), false),
            (stamps.to_vec(), true),
        ] {
            let talk = Talk::v4();
            let before = framed(&Packet { options, ..talk.segment(from_guest) });
            let mut frame = before.clone();
            if from_guest {
                let mut read = parsed(&frame, Direction::FromGuest);
                let was = read.segment;
                offsets.adjust_from_guest(&mut frame, &mut read);
                assert_eq!(parsed(&frame, Direction::FromGuest), read);
                assert_eq!(read.segment.seq, was.seq.wrapping_sub(16));
                assert_eq!((read.segment.tsval, read.segment.tsecr), (150, 60));
                assert!(is_right(&frame));
                continue;
            }
            let read = parsed(&frame, Direction::ToGuest);
            offsets.adjust_to_guest(&mut frame, &read);
            let now = parsed(&frame, Direction::ToGuest);
            assert_eq!(now.segment.ack, read.segment.ack.wrapping_add(16));
            if let Some([tsval, tsecr]) = now.timestamps() {
                assert_eq!((tsval, tsecr), (50, 60_u32.wrapping_sub(100)));
            }
            if let Some((at, _)) = now.sack_at() {
                assert_eq!(read_u32(&frame.bytes, at + 2), 0x110);
                assert_eq!(read_u32(&frame.bytes, at + 14), 0x14);
            }
            assert!(is_right(&frame));
            offsets.restore_to_guest(&mut frame, &now);
            assert_eq!(frame, before);
        }
    }
}
