//! Congestion marks (RFC 3168).

use super::Segments;
use vcc_frames::Packet;
use vcc_frames::wire::{ACK, CE, CWR, ECE, ECN_MASK, ECT_0, SYN};
use vcc_uml::Tampered;

/// The kernel never learns of a mark.
pub struct EceIgnored;

impl Segments for EceIgnored {
    fn receives(&mut self, mut segment: Packet, out: &mut Tampered) {
        if segment.flags & SYN == 0 {
            segment.flags &= !ECE;
        }
        out.received.push(segment.frame());
    }
}

/// Each segment reports that the window was reduced.
pub struct CwrSet;

impl Segments for CwrSet {
    fn sends(&mut self, mut segment: Packet, out: &mut Tampered) {
        if segment.flags & (SYN | ACK) == ACK {
            segment.flags |= CWR;
        }
        out.sent.push(segment.frame());
    }
}

/// A receiver whose kernel sees no CE, and whose acknowledgements have no ECE.
#[derive(Default)]
pub struct Hidden;

impl Segments for Hidden {
    fn sends(&mut self, mut segment: Packet, out: &mut Tampered) {
        if segment.flags & SYN == 0 {
            segment.flags &= !ECE;
        }
        out.sent.push(segment.frame());
    }

    fn receives(&mut self, mut segment: Packet, out: &mut Tampered) {
        if segment.traffic_class & ECN_MASK == CE {
            segment.traffic_class = segment.traffic_class & !ECN_MASK | ECT_0;
        }
        out.received.push(segment.frame());
    }
}
