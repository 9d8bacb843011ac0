//! The parsed form of the last frame that passed to the guest, until the shell has put it into the
//! guest's ring, which mostly is next: to parse it again costs as much as a call of the engine.

use vcc_engine::Action;

use crate::frame::{Direction, Frame};
use crate::parse::{Parsed, parse};
use crate::rewrite::changes_options;

#[derive(Clone, Default)]
pub(crate) struct Passed(Option<Known>);

#[derive(Clone)]
struct Known {
    /// As it passed.
    parsed: Parsed,
    /// Where its bytes are, and how many.
    place: (usize, usize),
}

fn place(frame: &Frame) -> (usize, usize) {
    (frame.bytes.as_ptr().addr(), frame.bytes.len())
}

impl Passed {
    pub(crate) fn clear(&mut self) {
        self.0 = None;
    }

    /// The frame has passed, rewritten by the action.
    #[inline]
    pub(crate) fn note(&mut self, frame: &Frame, parsed: Option<Parsed>, action: &Action) {
        let Some(mut parsed) = parsed else { return };
        if changes_options(&parsed, action) {
            return;
        }
        let segment = &mut parsed.segment;
        (segment.flags, segment.window, segment.ip_ecn) =
            (action.flags, action.window, action.ip_ecn);
        parsed.ip.ecn = action.ip_ecn;
        self.0 = Some(Known { parsed, place: place(frame) });
    }

    /// The frame's parsed form, at this time, if it is that frame.
    #[inline]
    pub(crate) fn take(&mut self, frame: &Frame, now_us: u64) -> Option<Parsed> {
        let Known { mut parsed, place: its } = self.0.take()?;
        if its != place(frame) {
            return None;
        }
        parsed.segment.now_us = now_us;
        debug_assert!(parse(frame, Direction::ToGuest).is_ok_and(|mut again| {
            again.segment.now_us = now_us;
            again == parsed
        }));
        Some(parsed)
    }
}
