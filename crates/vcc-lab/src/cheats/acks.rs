//! Acknowledgements of a receiver that wants to be sent more: Savage et al. (1999).

use vcc_frames::Packet;
use vcc_frames::wire::SYN;
use vcc_net::seq::after;
use vcc_uml::Tampered;

use super::Segments;
use super::segment::{Connections, Read};

/// Parts of an acknowledgement.
const PARTS: u32 = 8;

/// Each acknowledgement becomes several, each for a part of its bytes: a sender that counts them
/// grows its window for each.
#[derive(Default)]
pub struct Split(Connections<Option<u32>>);

impl Segments for Split {
    fn sends(&mut self, segment: Packet, out: &mut Tampered) {
        let last = self.0.of_sent(&segment).replace(segment.ack);
        let newly = last.map_or(0, |last| segment.ack.wrapping_sub(last));
        if segment.is_pure_ack() && (PARTS..1 << 30).contains(&newly) {
            for part in (1..PARTS).rev() {
                let ack = segment.ack.wrapping_sub(newly / PARTS * part);
                out.sent.push(Packet { ack, ..segment.clone() }.frame());
            }
        }
        out.sent.push(segment.frame());
    }
}

/// Each acknowledgement is followed by so many duplicates (RFC 5681, 2).
const DUPLICATES: usize = 3;

/// A sender in fast recovery treats each duplicate as a segment that has left the network.
pub struct Duplicates;

impl Segments for Duplicates {
    fn sends(&mut self, segment: Packet, out: &mut Tampered) {
        let copies = if segment.is_pure_ack() { DUPLICATES } else { 0 };
        out.sent.extend(vec![segment.frame(); 1 + copies]);
    }
}

/// Segments acknowledged before they have come.
const AHEAD_SEGS: u32 = 2;
/// Before so many bytes have come, the sender's window may be smaller than that.
const AFTER_BYTES: u32 = 100_000;

#[derive(Default)]
struct Arrived {
    first: Option<u32>,
    /// The end of what has come.
    end: u32,
    seg_bytes: u32,
    /// What came last had come before or left a hole: the sender repairs a loss.
    in_doubt: bool,
}

/// Acknowledges what is on its way: the sender sees a shorter round trip, and no losses. A segment
/// that is lost afterwards is lost for good.
#[derive(Default)]
pub struct Optimistic(Connections<Arrived>);

impl Segments for Optimistic {
    fn sends(&mut self, mut segment: Packet, out: &mut Tampered) {
        let arrived = self.0.of_sent(&segment);
        let came_bytes = arrived.first.map_or(0, |first| segment.ack.wrapping_sub(first));
        if segment.is_pure_ack() && came_bytes > AFTER_BYTES && !arrived.in_doubt {
            segment.ack = segment.ack.wrapping_add(AHEAD_SEGS * arrived.seg_bytes);
        }
        out.sent.push(segment.frame());
    }

    fn receives(&mut self, segment: Packet, out: &mut Tampered) {
        let arrived = self.0.of_received(&segment);
        if segment.flags & SYN != 0 || arrived.first.is_none() {
            arrived.first = Some(segment.seq);
            arrived.end = segment.seq.wrapping_add(u32::from(segment.flags & SYN != 0));
        }
        if !segment.payload.is_empty() {
            arrived.in_doubt = segment.seq != arrived.end;
            if after(segment.end(), arrived.end) {
                arrived.end = segment.end();
            }
            arrived.seg_bytes = arrived.seg_bytes.max(segment.payload.len() as u32);
        }
        out.received.push(segment.frame());
    }
}
