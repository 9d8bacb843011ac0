//! Connections whose windows are paced (`engine/cc/fractional_window.h`): their segments leave one by one, each
//! in its time.

use super::NS_PER_US;
use super::core::Core;
use crate::table::{Entry, FlowId};
use crate::timers::Timers;

/// When the next segment of each leaves.
#[derive(Clone, Default)]
pub(super) struct Intervals(Timers);

impl Intervals {
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.0.next_ns()
    }

    /// Sets the flow's timer, if something is held and has to wait for its time.
    #[inline]
    pub(super) fn arm(&mut self, core: &mut Core, id: FlowId) {
        let (now_ns, now_us) = (core.now_ns, core.now_us());
        let Some(Entry { key, state: flow, held, .. }) = core.table.get_mut(id) else { return };
        if held.queue.is_empty() {
            return;
        }
        let wait_us = flow.segment_interval_us(core.treatments.params_of(flow), now_us as u32);
        if wait_us > 0 {
            let due_ns = now_ns + u64::from(wait_us) * NS_PER_US;
            self.0.set(&mut held.interval_ns, due_ns, key);
        }
    }

    /// The next flow whose time has come.
    pub(super) fn next_due(&mut self, core: &mut Core) -> Option<FlowId> {
        self.0.next_due(&mut core.table, core.now_ns, |entry| &mut entry.held.interval_ns)
    }
}
