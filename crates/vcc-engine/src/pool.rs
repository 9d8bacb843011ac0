//! A pool, called around the engine as in the datapath.

use crate::{Action, FlowState, Params, Segment, native, sys};

/// A pool's account, with the layout of the kernel's map.
#[derive(Clone, Copy, Default, Debug)]
#[repr(transparent)]
pub struct Pool(pub sys::vcc_pool);

impl Pool {
    /// [`FlowState::from_guest`] of a flow in this pool.
    pub fn from_guest(&mut self, flow: &mut FlowState, params: &Params, sent: Segment) -> Action {
        self.around(flow, params, false, sent, FlowState::from_guest)
    }

    /// [`FlowState::to_guest`] of a flow in this pool.
    pub fn to_guest(&mut self, flow: &mut FlowState, params: &Params, sent: Segment) -> Action {
        self.around(flow, params, true, sent, FlowState::to_guest)
    }

    fn around(
        &mut self,
        flow: &mut FlowState,
        params: &Params,
        to_guest: bool,
        mut segment: Segment,
        engine: impl FnOnce(&mut FlowState, &Params, &Segment) -> Action,
    ) -> Action {
        // SAFETY: all four point to live values of the C types for the length of the call.
        unsafe {
            native::pool_begin(&mut self.0, &mut flow.0, &params.0, to_guest, &mut segment);
        }
        let action = engine(flow, params, &segment);
        // SAFETY: all four point to live values of the C types for the length of the call.
        unsafe { native::pool_end(&mut self.0, &mut flow.0, &params.0, &segment) };
        action
    }

    /// A deadline expired; `now_ms` is on the segments' clock.
    pub fn idle(&mut self, flow: &mut FlowState, params: &Params, now_ms: u32) {
        // SAFETY: all three point to live values of the C types for the length of the call.
        unsafe { native::pool_idle(&mut self.0, &mut flow.0, &params.0, now_ms) };
    }

    /// The flow ends, or comes under parameters of another pool or weight than these.
    pub fn leave(&mut self, flow: &mut FlowState, params: &Params) {
        // SAFETY: all three point to live values of the C types for the length of the call.
        unsafe { native::pool_leave(&mut self.0, &mut flow.0, &params.0) };
    }
}
