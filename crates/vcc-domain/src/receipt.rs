//! What a port has read of a frame that passes to the guest. The shell gives it back with the frame
//! when the guest's ring has it: to parse the frame again costs as much as a call of the engine.

use vcc_engine::Action;

use crate::frame::{Direction, Frame};
use crate::parse::{Parsed, parse};
use crate::rewrite::changes_options;

/// For [`Port::placed`](crate::Port::placed). It belongs to one frame, as that has passed.
#[derive(Clone, Debug, Default)]
pub struct Receipt(Option<Parsed>);

impl Receipt {
    /// For a frame that was cut after it had passed. The port reads it again.
    pub fn unread() -> Self {
        Receipt(None)
    }

    /// Of this frame.
    #[inline]
    pub(crate) fn from_parsed(parsed: Parsed) -> Self {
        Receipt(Some(parsed))
    }

    /// The frame's parsed form, at this time. None: it is no segment.
    #[inline]
    pub(crate) fn parsed(&mut self, frame: &Frame, now_us: u64) -> Option<&Parsed> {
        if self.0.is_none() {
            self.0 = parse(frame, Direction::ToGuest).ok();
        }
        let parsed = self.0.as_mut()?;
        parsed.segment.now_us = now_us;
        debug_assert!(is_of(parsed, frame), "the receipt is the frame's");
        Some(parsed)
    }
}

/// The action has rewritten the frame. False: its options are others, so that it has to be read again.
#[inline]
pub(crate) fn note_rewritten(parsed: &mut Parsed, action: &Action) -> bool {
    if changes_options(parsed, action) {
        return false;
    }
    let segment = &mut parsed.segment;
    (segment.flags, segment.window, segment.ip_ecn) = (action.flags, action.window, action.ip_ecn);
    parsed.ip.ecn = action.ip_ecn;
    true
}

/// Are they one segment? For assertions.
pub(crate) fn is_of(parsed: &Parsed, frame: &Frame) -> bool {
    parse(frame, Direction::ToGuest).is_ok_and(|mut again| {
        again.segment.now_us = parsed.segment.now_us;
        again == *parsed
    })
}
