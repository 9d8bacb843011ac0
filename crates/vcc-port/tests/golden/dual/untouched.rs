//! Frames that the datapath does not change, and why.

use vcc_engine::Mode;
use vcc_frames::wire::{ACK, SYN};
use vcc_port::{Counter, counters};

use super::DualRun;
use crate::direction::{DROP, Direction, NEXT};
use crate::layout::may_hold_tcp;
use crate::segment::Parsed;
use crate::setup::now_us;

impl DualRun {
    /// The counter of a TCP segment that has no flow and creates none.
    pub(super) fn refusal(&self, from: Direction, parsed: &Parsed) -> Option<Counter> {
        match opens(from, parsed) {
            false if parsed.is_signed() => Some(counters::SIGNED),
            false => Some(counters::UNKNOWN),
            true if self.mode() == Mode::Drain => None,
            true => Some(counters::TABLE_FULL),
        }
    }

    /// The verdict and the counter of a frame that cannot be parsed, for this reason.
    pub(super) fn unread(&self, frame: &[u8], counter: Counter) -> (i32, Option<Counter>) {
        let police = self.options.params.0.police != 0;
        let polices = police && matches!(self.mode(), Mode::Enforce | Mode::Drain);
        match polices && counter != counters::NOT_TCP && may_hold_tcp(frame) {
            true => (DROP, Some(counters::UNJUDGED)),
            false => (NEXT, Some(counter)),
        }
    }

    pub(super) fn leave_untouched(
        &mut self,
        from: Direction,
        frame: &[u8],
        gso_size: u32,
        (verdict, counter): (i32, Option<Counter>),
    ) {
        let output = self.run(from, frame, gso_size);
        let place = self.place(from);
        assert_eq!(output.return_value, verdict, "{place}");
        self.assert_frame(from, &output.frame, frame);
        let out = self.domain.send(&place, from, now_us(), frame, gso_size);
        out.assert_equals(&place, &output, None);
        if let Some(counter) = counter {
            self.count(counter);
        }
    }
}

/// Only a SYN without ACK creates a flow, and none that is signed by the peer.
pub(super) fn opens(from: Direction, parsed: &Parsed) -> bool {
    let is_syn = parsed.segment.flags & (SYN | ACK) == SYN;
    is_syn && (from == Direction::FromGuest || !parsed.is_signed())
}
