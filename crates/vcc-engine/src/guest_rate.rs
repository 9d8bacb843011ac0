//! The rate of all connections of a guest, called after the engine as in the datapath.

use std::num::NonZeroU32;

use crate::{Action, FlowState, Params, Segment, native};

/// A guest's bucket: when it is full again, in nanoseconds of the segments' clock.
#[derive(Clone, Copy, Default, Debug)]
pub struct GuestRate(u64);

/// When the rate admits a connection's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateDue {
    /// The rate does not bind the connection.
    Uncapped,
    Now,
    AtUs(u64),
}

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

    /// Takes bytes of a connection that the port does not know. False if they exceed the rate.
    pub fn take(&mut self, bytes_per_ms: NonZeroU32, bytes: u32, now_ns: u64) -> bool {
        // SAFETY: it points to a live number for the length of the call, and the divisor is not 0.
        unsafe { native::guest_rate_take(&mut self.0, bytes_per_ms.get(), bytes, now_ns) }
    }

    /// When a connection's data may leave. A shell that holds segments keeps them until then.
    pub fn due(&self, flow: &FlowState, params: &Params, now_us: u64) -> RateDue {
        let bytes_per_ms = params.0.guest_rate_cap_bytes_per_ms;
        // Most guests have no cap.
        if bytes_per_ms == 0 {
            return RateDue::Uncapped;
        }
        // SAFETY: both point to live values of the C types for the length of the call.
        if !unsafe { native::is_rate_capped(&flow.0, &params.0) } {
            return RateDue::Uncapped;
        }
        // SAFETY: it takes numbers, and its divisor is not 0.
        match unsafe { native::guest_rate_due_us(self.0, bytes_per_ms, now_us) } {
            0 => RateDue::Now,
            due_us => RateDue::AtUs(due_us),
        }
    }
}
