//! The rate of all connections of a guest, called after the engine as in the datapath.

use crate::{Action, FlowState, Params, Segment, native};

/// A guest's bucket: when it is full again, in nanoseconds of the segments' clock.
#[derive(Clone, Copy, Default, Debug)]
pub struct GuestRate(u64);

impl GuestRate {
    /// Drops a segment from the guest that the engine has passed, if it exceeds the rate.
    pub fn cap(
        &mut self,
        flow: &mut FlowState,
        params: &Params,
        segment: &Segment,
        action: &mut Action,
    ) {
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe {
            native::cap_guest_rate(&mut self.0, &mut flow.0, &params.0, segment, action);
        }
    }

    /// When the bucket has something left for the connection's data, in us; None: now. A shell that
    /// holds segments keeps them until then.
    pub fn due_us(&self, flow: &FlowState, params: &Params, now_us: u64) -> Option<u64> {
        // SAFETY: both point to live values of the C types for the length of the call.
        let due_us = unsafe { native::guest_rate_due_us(self.0, &flow.0, &params.0, now_us) };
        (due_us != 0).then_some(due_us)
    }
}
