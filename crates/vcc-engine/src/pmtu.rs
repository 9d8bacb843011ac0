//! The path MTU of a flow whose segments the shell holds (`engine/pmtu.h`).

use crate::{FlowState, Hold, Params, Recovery, Retained, native, sys};

/// An ICMP message about a packet of the guest that a link does not carry.
pub type TooBig = sys::vcc_too_big;

/// What a flow's path carries, as far as ICMP messages have reported it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct PathMtu(pub sys::vcc_pmtu);

impl PathMtu {
    /// Has a message been believed, perhaps long ago?
    pub fn is_known(&self) -> bool {
        self.0.mtu_bytes != 0
    }

    /// The largest payload that may leave behind IP and TCP headers of this size.
    pub fn limit_bytes(&self, now_us: u64, headers_bytes: u32) -> u32 {
        // SAFETY: a live value of the C type.
        unsafe { native::pmtu_limit_bytes(&self.0, now_us, headers_bytes) }
    }
}

impl Recovery {
    /// The path has become smaller: counts a segment as lost if its payload is too large.
    pub fn lost_if_larger(
        &mut self,
        retained: &mut Retained,
        payload_bytes: u32,
        limit_bytes: u32,
    ) {
        // SAFETY: both point to live values of the C types for the length of the call.
        unsafe { native::pmtu_lost(&mut self.0, retained, payload_bytes, limit_bytes) }
    }
}

impl FlowState {
    /// Is the message believed? Then the shell counts what is too large as lost, and lets no more of
    /// it leave.
    #[must_use]
    pub fn pmtu_shrinks(
        &mut self,
        hold: &Hold,
        repair: &mut Recovery,
        pmtu: &mut PathMtu,
        params: &Params,
        message: &TooBig,
    ) -> bool {
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe {
            native::pmtu_shrinks(
                &mut self.0,
                &hold.0,
                &mut repair.0,
                &mut pmtu.0,
                &params.0,
                message,
            )
        }
    }
}
