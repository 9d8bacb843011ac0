//! A flow's out-of-order queue: segments of the guest behind a gap in its data, which several queues of its card, or
//! several CPUs behind its device, have reordered.

use std::collections::VecDeque;

use super::{Waiting, charge_bytes, sequence_end};
use vcc_net::seq::{after, before};

/// In sequence. Without any, it takes no memory of its own.
#[derive(Clone, Default)]
pub(crate) struct OutOfOrder(VecDeque<Waiting>);

impl OutOfOrder {
    /// Keeps a segment. False if one that begins there has all of it.
    pub(crate) fn keep(&mut self, waiting: Waiting) -> bool {
        let (seq, end) = (waiting.segment().seq, sequence_end(waiting.segment()));
        let place = self.0.partition_point(|other| before(other.segment().seq, seq));
        let is_there = |other: &Waiting| {
            other.segment().seq == seq && !after(end, sequence_end(other.segment()))
        };
        if self.0.get(place).is_some_and(is_there) {
            return false;
        }
        self.0.insert(place, waiting);
        true
    }

    /// Takes the first one, if no data is missing between `nxt` and it. Returns the bytes of the buffer that are
    /// free again, too.
    pub(crate) fn take(&mut self, nxt: u32) -> Option<(Waiting, u32)> {
        if self.0.front().is_none_or(|first| after(first.segment().seq, nxt)) {
            return None;
        }
        let first = self.0.pop_front()?;
        if self.0.is_empty() {
            self.0 = VecDeque::new();
        }
        let free_bytes = charge_bytes(&first.frame);
        Some((first, free_bytes))
    }
}
