//! The rate of all connections of a guest, called after the engine as in the datapath.

use crate::{Action, FlowState, Params, Segment, sys};

unsafe extern "C-unwind" {
    fn vcc_native_cap_guest_rate(
        full_ns: *mut u64,
        flow: *mut sys::vcc_flow,
        params: *const sys::vcc_params,
        segment: *const Segment,
        action: *mut Action,
    );
}

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
            vcc_native_cap_guest_rate(&mut self.0, &mut flow.0, &params.0, segment, action);
        }
    }
}
