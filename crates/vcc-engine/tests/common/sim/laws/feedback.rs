//! Feedback: its negotiation, and exact reports of the receiver half.

use vcc_engine::{Action, FlowState, Segment, sys};

use super::accecn::accepts_accecn;
use super::{ACK, FIN, Laws};

pub(super) const COUNTER_MASK: u64 = 0xff_ffff;

impl Laws {
    /// Negotiation of feedback on a SYN or SYN-ACK.
    pub(super) fn hello_sent(&mut self, segment: &Segment, action: &Action) {
        let emitted = u32::from(action.emit);
        let answers = segment.flags & ACK != 0;
        if emitted == sys::EMIT_NOTHING {
            return;
        }
        if emitted == sys::EMIT_PACK {
            assert!(accepts_accecn(action.flags) && answers, "no other report on a SYN");
            assert_eq!((action.feedback.ect0_bytes, action.feedback.ce_bytes), (1, 0));
            return;
        }
        assert_eq!(emitted, sys::EMIT_HELLO, "no report on a SYN");
        assert!(segment.option_room_bytes >= 8);
        if answers {
            assert_eq!(u32::from(action.hello), sys::HELLO_ACCEPT);
            assert!(self.offered, "accepted without an offer");
            self.agreed = true;
        } else {
            assert_eq!(u32::from(action.hello), sys::HELLO_OFFER);
            assert!(!self.guest.seen, "only the first SYN offers");
            self.offered = true;
        }
    }

    /// The receiver half reports received payload, exactly and in time.
    pub(super) fn reports(&mut self, segment: &Segment, action: &Action, after: &FlowState) {
        let emitted = u32::from(action.emit);
        let pure = segment.payload_bytes == 0 && segment.flags & FIN == 0;
        if self.has_accecn() {
            self.counter_reports(segment, action);
            return;
        }
        if !self.agreed {
            assert_eq!(emitted, sys::EMIT_NOTHING, "a report without negotiation");
            return;
        }
        let enough = self.due_ce || self.due_bytes >= 2 * u64::from(after.mss_bytes);
        let wanted = match (self.due_bytes > 0, pure) {
            (false, _) => sys::EMIT_NOTHING,
            (true, true) if segment.option_room_bytes >= 8 => sys::EMIT_PACK,
            (true, true) => sys::EMIT_FACK,
            (true, false) if enough => sys::EMIT_FACK,
            (true, false) => sys::EMIT_NOTHING,
        };
        assert_eq!(emitted, wanted, "{} bytes are due", self.due_bytes);
        if emitted == sys::EMIT_NOTHING {
            return;
        }
        self.counts.packs += u64::from(emitted == sys::EMIT_PACK);
        self.counts.facks += u64::from(emitted == sys::EMIT_FACK);
        let reported = (action.feedback.ect0_bytes, action.feedback.ce_bytes);
        let counted = (self.ect0_bytes & COUNTER_MASK, self.ce_bytes & COUNTER_MASK);
        assert_eq!((u64::from(reported.0), u64::from(reported.1)), counted, "counters");
        (self.due_bytes, self.due_ce) = (0, false);
    }
}
