//! Law 17: a segment that its receiver discards changes nothing.

use vcc_engine::{Action, FlowState, Segment};

use super::{FIN, Laws};

impl Laws {
    /// Does the guest accept the segment (RFC 9293, 3.10.7.4; RFC 5961, 5.2)?
    pub(super) fn accepts(&self, segment: &Segment) -> bool {
        let start = self.peer_offset(segment.seq);
        let end = start + i64::from(segment.payload_bytes) + i64::from(segment.flags & FIN != 0);
        let ack = self.offset(segment.ack, self.una);
        end >= self.acknowledged && start <= self.takes_up_to && ack <= self.nxt
    }

    /// Law 17: a segment that the guest discards changes nothing, and shows it nothing new.
    pub(super) fn refused(
        &mut self,
        before: &FlowState,
        after: &FlowState,
        segment: &Segment,
        action: &Action,
    ) {
        self.counts.refused += 1;
        assert!(before.0 == after.0, "law 17: a discarded segment changed the flow");
        if self.is_shadow() || self.left_alone() {
            return;
        }
        self.ecn_to_guest(segment, action);
        let guest_scale = if self.scaled() { self.peer.wscale } else { 0 };
        let ack = self.offset(segment.ack, self.una);
        if segment.window == 0 {
            return;
        }
        if ack > self.nxt {
            let last = self.last.map_or(1, |last| last.field);
            assert!(action.window <= last.max(1), "law 17: more than the last window");
            return;
        }
        let edge = ack + (i64::from(action.window) << guest_scale);
        let known = self.furthest_edge.max(self.nxt);
        assert!(edge < known + 2 * (1 << guest_scale), "law 17: {edge} beyond {known}");
    }
}
