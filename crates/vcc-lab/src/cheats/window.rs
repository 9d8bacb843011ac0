//! The window field.

use super::Segments;
use vcc_frames::Packet;
use vcc_frames::wire::SYN;
use vcc_uml::Tampered;

const MOST: u16 = u16::MAX;

/// Only the kernel's own congestion control limits it: every window that it is shown is the largest
/// of its scale.
pub struct Ignored;

pub fn raise(segment: &mut Packet) {
    // A SYN's window is for its first flight, and has no scale.
    if segment.flags & SYN == 0 {
        segment.window = MOST;
    }
}

impl Segments for Ignored {
    fn receives(&mut self, mut segment: Packet, out: &mut Tampered) {
        raise(&mut segment);
        out.received.push(segment.frame());
    }
}
