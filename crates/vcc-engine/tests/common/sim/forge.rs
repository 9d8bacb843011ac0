//! Forged segments, which the guest discards (law 17).

use vcc_engine::sys;

use super::{OPT_OURS, Packet, Sim};

impl Sim {
    /// A segment from an off-path attacker who knows addresses and ports, or a keepalive: the
    /// guest discards it.
    pub(super) fn forge(&mut self, packet: Packet) -> Packet {
        let has_ecn = self.flow().has(sys::FLOW_ECN_FABRIC);
        let mut forged = Packet { sack: (0, 0), ..packet };
        let segment = &mut forged.segment;
        segment.flags = sys::TCP_ACK as u16;
        segment.options &= !OPT_OURS & !(sys::OPT_SACK as u16);
        segment.payload_bytes = 0;
        segment.window = self.rng.next() as u16;
        let (far, marks) = (self.rng.range(1 << 28, 1 << 30) as u32, self.rng.chance(500));
        // After both FINs, a SYN would start a new connection.
        let kinds = if u32::from(self.flow().stage) == sys::STAGE_CLOSED { 6 } else { 7 };
        match self.rng.range(0, kinds) {
            // A keepalive below the guest's acknowledgement (RFC 9293, 3.8.4).
            0 => segment.seq = self.guest.acknowledged_number().wrapping_sub(1),
            1 => segment.seq = segment.seq.wrapping_add(far),
            2 => segment.seq = segment.seq.wrapping_sub(far),
            3 => segment.ack = segment.ack.wrapping_add(far),
            4 => (segment.seq, segment.payload_bytes) = (segment.seq.wrapping_sub(far), 1000),
            5 => {
                segment.flags = sys::TCP_RST as u16;
                segment.seq = segment.seq.wrapping_add(far);
            }
            _ => {
                segment.flags = sys::TCP_SYN as u16;
                segment.seq = segment.seq.wrapping_add(far);
            }
        }
        if u32::from(segment.flags) == sys::TCP_ACK && marks {
            segment.flags |= sys::TCP_FIN as u16;
            if has_ecn {
                segment.ip_ecn = sys::IP_ECN_CE as u8;
                segment.flags |= (sys::TCP_ECE | sys::TCP_CWR) as u16;
            }
        }
        if u32::from(segment.flags) & sys::TCP_FIN != 0 && segment.payload_bytes == 0 {
            // A FIN must not extend a keepalive beyond what was acknowledged.
            segment.seq = segment.seq.wrapping_sub(1);
        }
        forged
    }
}
