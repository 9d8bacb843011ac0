//! The flow that is due next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use vcc_engine::FlowKey;

/// Beyond this many, and four times the flows, obsolete deadlines are removed.
const MANY: usize = 64;

/// Deadlines in order of time, then of key. One that was replaced, or whose flow is gone, stays until
/// it comes first, so that a segment moves its flow's deadline for the price of an insertion.
#[derive(Clone, Default)]
pub(crate) struct Deadlines(BinaryHeap<Reverse<(u64, FlowKey)>>);

impl Deadlines {
    pub(crate) fn add(&mut self, at_ns: u64, key: FlowKey) {
        self.0.push(Reverse((at_ns, key)));
    }

    /// The first one; valid if [`Deadlines::settle`] has followed every change.
    pub(crate) fn first(&self) -> Option<(u64, FlowKey)> {
        self.0.peek().map(|Reverse(first)| *first)
    }

    /// Removes obsolete deadlines in front, after that of the flow `changed` has changed. `of` is a
    /// flow's deadline, None if the flow is gone.
    pub(crate) fn settle(&mut self, changed: &FlowKey, of: impl Fn(&FlowKey) -> Option<u64>) {
        if self.first().is_none_or(|(_, key)| key != *changed) {
            return;
        }
        while self.first().is_some_and(|(at_ns, key)| of(&key) != Some(at_ns)) {
            self.0.pop();
        }
    }

    /// Are most of them obsolete, with this number of flows?
    pub(crate) fn are_many_beside(&self, flows: usize) -> bool {
        self.0.len() > MANY.max(4 * flows)
    }
}

impl FromIterator<(u64, FlowKey)> for Deadlines {
    fn from_iter<I: IntoIterator<Item = (u64, FlowKey)>>(all: I) -> Self {
        Deadlines(all.into_iter().map(Reverse).collect())
    }
}
