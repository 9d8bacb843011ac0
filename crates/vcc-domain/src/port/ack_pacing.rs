//! ACKs that wait for the pace of a window below two segments (`engine/pacing.h`).

use std::collections::BTreeMap;

use crate::frame::{Frame, Verdict};

/// Of more ACKs, the port keeps none: they pass at once, as they do where nothing is paced.
const WAITING_MAX: usize = 16_384;

#[derive(Clone, Default)]
pub(super) struct AckPacing {
    /// By the time when each passes; at the same time, in the order in which they came.
    waiting: BTreeMap<(u64, u64), Frame>,
    came: u64,
}

impl AckPacing {
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.waiting.first_key_value().map(|((due_ns, _), _)| *due_ns)
    }

    /// Keeps a frame for the guest until `due_ns`.
    pub(super) fn delay(&mut self, due_ns: u64, frame: &mut Frame) -> Verdict {
        if self.waiting.len() >= WAITING_MAX {
            return Verdict::Pass;
        }
        self.waiting.insert((due_ns, self.came), frame.take_to_keep());
        self.came += 1;
        Verdict::Held
    }

    /// Gives the guest the ACKs whose time has come.
    pub(super) fn advance(&mut self, now_ns: u64, to_guest: &mut Vec<Frame>) {
        while self.next_ns().is_some_and(|due_ns| due_ns <= now_ns) {
            to_guest.extend(self.waiting.pop_first().map(|(_, frame)| frame));
        }
    }

    /// Gives the guest all of them, because the port is about to end.
    pub(super) fn end(&mut self, to_guest: &mut Vec<Frame>) {
        to_guest.extend(std::mem::take(&mut self.waiting).into_values());
    }
}
