//! A segment that was held leaves with the acknowledgement, window and timestamps that the guest
//! would send it with now.
//!
//! An older TSval than one that has passed would fail PAWS at the receiver (RFC 7323, 5.3).

use vcc_engine::{Segment, sys};

use crate::frame::Frame;
use crate::handover::{LatestRow, Macs};
use crate::neighbours;
use crate::options::KIND_NOP;
use crate::parse::Parsed;
use crate::rewrite::rewrite_header;
use vcc_net::wire::*;

/// From the guest's last segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Latest {
    ack: u32,
    window: u16,
    neighbour: Option<sys::vcc_neighbour>,
    /// TSval and TSecr.
    timestamps: Option<[u32; 2]>,
}

impl Latest {
    /// Records a segment of the guest with an ACK.
    pub(crate) fn note(&mut self, frame: &Frame, parsed: &Parsed) {
        let flags = u32::from(parsed.segment.flags);
        if flags & sys::TCP_ACK == 0 || flags & (sys::TCP_SYN | sys::TCP_RST) != 0 {
            return;
        }
        self.ack = parsed.segment.ack;
        self.window = parsed.segment.window;
        self.neighbour = Some(neighbours::beside(&frame.bytes));
        self.timestamps = parsed.timestamps();
    }

    /// For another host; None: the guest has sent nothing.
    pub(crate) fn row(&self) -> Option<LatestRow> {
        let Latest { ack, window, neighbour, timestamps } = *self;
        let macs = Macs::from_neighbour(&neighbour?);
        Some(LatestRow { ack, window, macs, timestamps })
    }

    pub(crate) fn from_row(row: &LatestRow) -> Self {
        let LatestRow { ack, window, macs, timestamps } = *row;
        Latest { ack, window, neighbour: Some(macs.neighbour()), timestamps }
    }

    /// The link addresses of the connection: a guest may have several ways to its peers.
    pub(crate) fn neighbour(&self) -> Option<&sys::vcc_neighbour> {
        self.neighbour.as_ref()
    }

    /// TSval and TSecr of the peer's acknowledgement of that segment, at this time of the peer.
    pub(crate) fn answered_by(&self, peer_tsval: u32) -> Option<[u32; 2]> {
        self.timestamps.map(|[tsval, _]| [peer_tsval, tsval])
    }

    /// Brings the frame up to date. SACK blocks belong to the acknowledgement that they came with:
    /// next to a later one they would be DSACK blocks (RFC 2883).
    pub(crate) fn renew(&self, frame: &mut Frame, parsed: &mut Parsed) {
        if u32::from(parsed.segment.options) & sys::OPT_SACK == 0 {
            (parsed.segment.ack, parsed.segment.window) = (self.ack, self.window);
        }
        let timestamps = parsed.timestamps_at().zip(self.timestamps);
        if let Some((_, latest)) = timestamps {
            [parsed.segment.tsval, parsed.segment.tsecr] = latest;
        }
        let Segment { ack, window, .. } = parsed.segment;
        let tcp_at = parsed.ip.tcp_at;
        rewrite_header(frame, parsed, |frame| {
            write_u32(&mut frame.bytes, tcp_at + TCP_ACK_AT, ack);
            write_u16(&mut frame.bytes, tcp_at + TCP_WINDOW_AT, window);
            if let Some((at, [tsval, tsecr])) = timestamps {
                write_u32(&mut frame.bytes, at, tsval);
                write_u32(&mut frame.bytes, at + 4, tsecr);
            }
            parsed.header_bytes
        });
    }
}

/// Gives a frame without payload another sequence number. The urgent pointer would point elsewhere
/// (RFC 9293, 3.1), so the frame loses its URG; the data that is held has it, too.
pub(crate) fn set_seq(frame: &mut Frame, parsed: &mut Parsed, seq: u32) {
    let tcp_at = parsed.ip.tcp_at;
    let urg = sys::TCP_URG as u16;
    rewrite_header(frame, parsed, |frame| {
        write_u32(&mut frame.bytes, tcp_at + TCP_SEQ_AT, seq);
        let word = read_u16(&frame.bytes, tcp_at + TCP_OFFSET_FLAGS_AT);
        write_u16(&mut frame.bytes, tcp_at + TCP_OFFSET_FLAGS_AT, word & !urg);
        parsed.header_bytes
    });
    parsed.segment.seq = seq;
    parsed.segment.flags &= !urg;
}

/// Gives a frame to the guest another acknowledgement.
pub(crate) fn set_ack(frame: &mut Frame, parsed: &mut Parsed, ack: u32) {
    let tcp_at = parsed.ip.tcp_at;
    rewrite_header(frame, parsed, |frame| {
        write_u32(&mut frame.bytes, tcp_at + TCP_ACK_AT, ack);
        parsed.header_bytes
    });
    parsed.segment.ack = ack;
}

/// Removes the SACK blocks.
#[inline]
pub(crate) fn strip_sack(frame: &mut Frame, parsed: &mut Parsed) {
    if let Some(place) = parsed.sack_at() {
        strip_option(frame, parsed, place);
    }
}

fn strip_option(frame: &mut Frame, parsed: &mut Parsed, (at, bytes): (usize, usize)) {
    parsed.places.sack_at = None;
    rewrite_header(frame, parsed, |frame| {
        frame.bytes[at..at + bytes].fill(KIND_NOP);
        parsed.header_bytes
    });
    let Segment { options, dsack_bytes, dsack_seq, .. } = &mut parsed.segment;
    *options &= !(sys::OPT_SACK as u16);
    (*dsack_bytes, *dsack_seq) = (0, 0);
}

#[cfg(test)]
mod tests {
    use vcc_frames::{Packet, payload};

    use super::*;
    use crate::frame::Direction;
    use crate::parse::parse;
    use crate::testing::{ACK, Talk, framed, is_right};

    fn stamped(time: u8, more: &[u8]) -> Packet {
        let options = [&[1, 1, 8, 10, 0, 0, 0, time, 0, 0, 1, time][..], more].concat();
        Packet { options, payload: payload(99), ..Talk::v4().segment(true) }
    }

    fn renewed(held: Packet, latest: &Packet) -> (Frame, Parsed) {
        let mut now = Latest::default();
        let newer = framed(latest);
        now.note(&newer, &parse(&newer, Direction::FromGuest).expect("TCP"));
        let mut frame = framed(&held);
        let mut parsed = parse(&frame, Direction::FromGuest).expect("TCP");
        now.renew(&mut frame, &mut parsed);
        assert!(is_right(&frame));
        let again = parse(&frame, Direction::FromGuest).expect("TCP");
        assert_eq!(again.segment, parsed.segment, "the parsed segment is the frame's");
        (frame, again)
    }

    #[test]
    fn a_held_segment_has_the_latest_acknowledgement_and_timestamps() {
        let latest = Packet { ack: 9_999, window: 77, payload: Vec::new(), ..stamped(9, &[]) };
        let (frame, parsed) = renewed(stamped(5, &[]), &latest);
        assert_eq!((parsed.segment.ack, parsed.segment.window), (9_999, 77));
        assert_eq!(frame.bytes[58..66], [0, 0, 0, 9, 0, 0, 1, 9]);
    }

    #[test]
    fn sack_blocks_keep_their_acknowledgement() {
        let blocks = [1, 1, 5, 10, 0, 0, 40, 0, 0, 0, 50, 0];
        let held = stamped(5, &blocks);
        let before = held.ack;
        let (frame, parsed) = renewed(held, &Packet { ack: 30_000, ..stamped(9, &[]) });
        assert_eq!(parsed.segment.ack, before);
        assert_eq!(frame.bytes[61], 9, "PAWS");
    }

    #[test]
    fn a_sequence_number_changes_alone_but_for_urg() {
        const URG: u16 = sys::TCP_URG as u16;
        let urgent = Packet { flags: ACK | URG, ..stamped(5, &[]) };
        let mut frame = framed(&urgent);
        let mut parsed = parse(&frame, Direction::FromGuest).expect("TCP");
        set_seq(&mut frame, &mut parsed, 0xfedc_ba98);
        assert!(is_right(&frame));
        let again = parse(&frame, Direction::FromGuest).expect("TCP");
        assert_eq!((again.segment, again.segment.seq), (parsed.segment, 0xfedc_ba98));
        assert_eq!(again.segment.flags, ACK);
    }
}
