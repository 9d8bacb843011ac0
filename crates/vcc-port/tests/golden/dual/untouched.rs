//! Frames that the datapath does not change, and why.

use std::ops::RangeInclusive;

use vcc_engine::{FlowState, Mode, Segment};
use vcc_frames::wire::{ACK, SYN};
use vcc_port::{Counter, counters};

use super::{DualRun, key};
use crate::direction::{DROP, Direction, NEXT};
use crate::layout::{as_if_whole, may_hold_tcp};
use crate::segment::Parsed;
use crate::setup::now_us;
use crate::state;

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
        let started_us = now_us();
        let output = self.run(from, frame, gso_size);
        let ended_us = now_us();
        let place = self.place(from);
        assert_eq!(output.return_value, verdict, "{place}");
        self.assert_frame(from, &output.frame, frame);
        let out = self.domain.send(&place, from, now_us(), frame, gso_size);
        out.assert_equals(&place, &output, None);
        if let Some(counter) = counter {
            self.count(counter);
        }
        if from == Direction::FromGuest && counter == Some(counters::FRAGMENT) {
            self.learn_of_fragment(frame, started_us..=ended_us);
        }
    }

    /// The flow of a first fragment learns of it, at some time of the run; unless a timer holds it, on a CPU that
    /// has been descheduled.
    fn learn_of_fragment(&mut self, frame: &[u8], mut during_us: RangeInclusive<u64>) {
        let Some(whole) = as_if_whole(frame) else { return };
        let Ok(parsed) = Parsed::parse(&whole, 0) else { return };
        let key = key(&whole, &parsed.at, Direction::FromGuest);
        let Some(before) = self.flows.get(&key).copied() else { return };
        let kernel = self.kernel_state(&key).expect("the kernel keeps it");
        let learn = |now_us| {
            let mut state = before;
            let segment = Segment { now_us, ..parsed.segment };
            let releases = state.fragment_from_guest(&self.params, &segment);
            (state, releases)
        };
        let equal = |state: &FlowState| state::bytes(state) == state::bytes(&kernel);
        if equal(&before) {
            return;
        }
        let found = during_us.find_map(|now_us| Some(learn(now_us)).filter(|(it, _)| equal(it)));
        let (state, releases) = found.unwrap_or_else(|| {
            panic!("{}", state::differences(&kernel, &learn(*during_us.end()).0))
        });
        self.flows.insert(key, state);
        if releases {
            self.count(counters::IN_FRAGMENTS);
        }
    }
}

/// Only a SYN without ACK creates a flow, and none that is signed by the peer.
pub(super) fn opens(from: Direction, parsed: &Parsed) -> bool {
    let is_syn = parsed.segment.flags & (SYN | ACK) == SYN;
    is_syn && (from == Direction::FromGuest || !parsed.is_signed())
}
