//! Connections that come to a shell with buffers (`engine/handover.h`).

use crate::{FlowState, Params, Recovery, native};

impl FlowState {
    /// Takes over the connection as it was described when its guest had stopped; see
    /// [`FlowState::travelling`]. False: no connection can have such a state.
    #[must_use]
    pub fn take_over(&mut self, params: &Params, now_us: u64) -> bool {
        // SAFETY: both point to live values of the C types for the length of the call.
        unsafe { native::take_over(&mut self.0, &params.0, now_us) == 0 }
    }

    /// The guest resumes after a time in which neither it nor the shell has run.
    pub fn go_on(&mut self, recovery: &mut Recovery, now_us: u64) {
        // SAFETY: both point to live values of the C types for the length of the call.
        unsafe { native::resume(&mut self.0, &mut recovery.0, now_us) }
    }
}
