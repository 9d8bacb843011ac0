//! A pool, called around the engine as in the datapath.

use crate::{Action, FlowState, Hold, Params, Segment, native, sys};

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

    /// Before the engine at a port that holds segments (`engine/hold_pool.h`): writes the flow's limit into the
    /// segment. `charged_bytes` is what the pool was charged for the flow.
    #[inline]
    pub fn hold_begin(
        &mut self,
        flow: &mut FlowState,
        hold: &Hold,
        params: &Params,
        to_guest: bool,
        segment: &mut Segment,
        charged_bytes: &mut u32,
    ) {
        let (pool, flow) = (&mut self.0, &mut flow.0);
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe {
            native::hold_pool_begin(
                pool,
                flow,
                &hold.0,
                &params.0,
                to_guest,
                segment,
                charged_bytes,
            );
        }
    }

    /// After the engine, with the same segment.
    #[inline]
    pub fn hold_end(
        &mut self,
        flow: &mut FlowState,
        hold: &Hold,
        params: &Params,
        segment: &Segment,
        charged_bytes: &mut u32,
    ) {
        let (pool, flow) = (&mut self.0, &mut flow.0);
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe { native::hold_pool_end(pool, flow, &hold.0, &params.0, segment, charged_bytes) };
    }

    /// [`Pool::idle`] at such a port.
    pub fn hold_idle(
        &mut self,
        flow: &mut FlowState,
        hold: &Hold,
        params: &Params,
        now_ms: u32,
        charged_bytes: &mut u32,
    ) {
        let (pool, flow) = (&mut self.0, &mut flow.0);
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe { native::hold_pool_idle(pool, flow, &hold.0, &params.0, now_ms, charged_bytes) };
    }

    /// The flow's treatment has changed, and so may what it holds of this pool.
    pub fn hold_settle(
        &mut self,
        flow: &FlowState,
        hold: &Hold,
        params: &Params,
        charged_bytes: &mut u32,
    ) {
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe {
            native::hold_pool_settle(&mut self.0, &flow.0, &hold.0, &params.0, charged_bytes);
        }
    }

    /// The flow comes from another host.
    pub fn hold_arrive(
        &mut self,
        flow: &mut FlowState,
        hold: &Hold,
        params: &Params,
        charged_bytes: &mut u32,
    ) {
        let (pool, flow) = (&mut self.0, &mut flow.0);
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe { native::hold_pool_arrive(pool, flow, &hold.0, &params.0, charged_bytes) };
    }

    /// [`Pool::leave`] with what the pool was charged, and for which weight.
    pub fn hold_leave(&mut self, flow: &mut FlowState, charged_bytes: u32, weight: u16) {
        // SAFETY: both point to live values of the C types for the length of the call.
        unsafe {
            native::hold_pool_leave(&mut self.0, &mut flow.0, charged_bytes, weight);
        }
    }
}
