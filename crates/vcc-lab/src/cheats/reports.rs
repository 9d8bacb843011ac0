//! vcc's own options, from a receiver that plays vcc.

use super::Segments;
use super::segment::{Connections, Read};
use vcc_frames::Packet;
use vcc_frames::options;
use vcc_frames::wire::{ACK, COUNTER_MASK, HELLO_ACCEPT, SYN};
use vcc_uml::Tampered;

/// Accepts feedback in the handshake, reports all bytes as unmarked ones, and hides the marks
/// otherwise, too.
#[derive(Default)]
pub struct Forged {
    arrived_bytes: Connections<u32>,
    marks: super::marks::Hidden,
}

impl Segments for Forged {
    fn sends(&mut self, mut segment: Packet, out: &mut Tampered) {
        if segment.flags & (SYN | ACK) == SYN | ACK {
            segment.add_option(&options::hello(HELLO_ACCEPT));
        } else if segment.is_pure_ack() {
            // The counter of ECT(0) begins at 1 (RFC 9768, 3.2.1).
            let ect0_bytes = *self.arrived_bytes.of_sent(&segment) + 1;
            segment.add_option(&options::pack(ect0_bytes & COUNTER_MASK, 0));
        }
        self.marks.sends(segment, out);
    }

    fn receives(&mut self, segment: Packet, out: &mut Tampered) {
        let bytes = segment.payload.len() as u32;
        let arrived_bytes = self.arrived_bytes.of_received(&segment);
        *arrived_bytes = arrived_bytes.wrapping_add(bytes) & COUNTER_MASK;
        self.marks.receives(segment, out);
    }
}
