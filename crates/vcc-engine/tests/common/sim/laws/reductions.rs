//! Law 6: one window reduction per window of data.

use vcc_engine::{FlowState, Segment, sys};

use super::{ECE, Laws};

impl Laws {
    /// Law 6, by the engine's own count: at most one reduction per call and per window, and every
    /// new mark is answered.
    pub(super) fn note_reductions(
        &mut self,
        before: &FlowState,
        after: &FlowState,
        ack: Option<&Segment>,
    ) {
        let begun = after.reductions.wrapping_sub(before.reductions);
        let times_out = u32::from(after.ca_state) == sys::CA_LOSS
            && (u32::from(before.ca_state) != sys::CA_LOSS
                || after.rto_backoff > before.rto_backoff);
        assert!(begun <= 1, "law 6: {begun} reductions at once");
        assert!(after.cc.cwnd_segs >= 1, "cwnd is {}", after.cc.cwnd_segs);
        if begun == 1 {
            self.counts.reductions += 1;
            if let Some(reduced_at) = self.reduced_at {
                // A FACK acknowledges too, but does not reach the guest.
                let una = ack.map_or(self.una, |ack| self.una.max(self.offset(ack.ack, self.una)));
                // After a timeout, the window starts at `recover` itself: nothing beyond it can
                // have been acknowledged, because it was lost. So it does after an idle period,
                // with all acknowledged.
                let restarted =
                    u32::from(before.ca_state) == sys::CA_CWR && before.prr_prior_segs == 0;
                let reached = una > reduced_at || ((times_out || restarted) && una >= reduced_at);
                assert!(reached, "law 6: two reductions in one window");
            }
            self.reduced_at = Some(self.nxt);
            self.cwr_required = true;
            self.cwr_allowed = true;
        }
        if times_out {
            self.counts.timeouts += 1;
            self.cwr_allowed = true;
        }
        let Some(segment) = ack else { return };
        let unanswered = u32::from(before.ca_state) == sys::CA_OPEN
            || self.offset(segment.ack, self.una) > self.offset(before.recover, self.una);
        if !self.fabric_ecn() || !unanswered || self.left_alone() {
            return;
        }
        if self.has_accecn() {
            let marked = after.marks != before.marks;
            self.counts.marks_counted += u64::from(marked);
            assert!(begun == 1 || !marked, "law 6: a mark in a new window is answered");
            return;
        }
        let reported = segment.options & (sys::OPT_PACK | sys::OPT_FACK) as u16 != 0;
        let marked = if !self.agreed || after.has(sys::FLOW_FEEDBACK_LOST) {
            segment.flags & ECE != 0
        } else if reported {
            after.heard.ce_bytes != before.heard.ce_bytes
        } else {
            segment.flags & ECE != 0 && !before.has(sys::FLOW_FEEDBACK_HEARD)
        };
        if marked {
            self.counts.marks_reported += u64::from(reported);
            assert_eq!(begun, 1, "law 6: a mark in a new window is answered");
        }
    }
}
