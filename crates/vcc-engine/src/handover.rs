//! Connections that come to a shell with buffers (`engine/handover.h`).

use crate::{FlowState, Params, Recovery, sys};

unsafe extern "C-unwind" {
    fn vcc_native_take_over(
        flow: *mut sys::vcc_flow,
        params: *const sys::vcc_params,
        now_us: u64,
    ) -> std::ffi::c_int;
    fn vcc_native_resume(flow: *mut sys::vcc_flow, repair: *mut sys::vcc_repair, now_us: u64);
}

impl FlowState {
    /// Takes over the connection as it was described when its guest had stopped; see
    /// [`FlowState::travelling`]. False: no connection is like that.
    #[must_use]
    pub fn take_over(&mut self, params: &Params, now_us: u64) -> bool {
        // SAFETY: both point to live values of the C types for the length of the call.
        unsafe { vcc_native_take_over(&mut self.0, &params.0, now_us) == 0 }
    }

    /// The guest goes on after a time in which neither it nor the shell has run.
    pub fn go_on(&mut self, recovery: &mut Recovery, now_us: u64) {
        // SAFETY: both point to live values of the C types for the length of the call.
        unsafe { vcc_native_resume(&mut self.0, &mut recovery.0, now_us) }
    }
}
