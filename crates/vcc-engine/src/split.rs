//! Acknowledging a guest's data in the peer's name (`engine/split.h`).

use crate::{Buffer, FlowState, Hold, Params, Segment, native};

impl Hold {
    /// The acknowledgement to show to the guest in place of the peer's.
    #[inline]
    pub fn split_ack(&self, ack: u32) -> u32 {
        // Mostly nothing is promised.
        if self.0.promises == 0 {
            return ack;
        }
        // SAFETY: a live value of the C type.
        unsafe { native::split_ack(&self.0, ack) }
    }
}

impl FlowState {
    /// After a segment of the guest: is an acknowledgement due, with [`Hold`]'s `promised` and the
    /// flow's window? `end` is one past the last byte that the shell has in sequence, without a FIN.
    #[inline]
    pub fn split_promises(
        &mut self,
        hold: &mut Hold,
        buffer: &Buffer,
        params: &Params,
        segment: &Segment,
        end: u32,
    ) -> bool {
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe {
            native::split_promises(&mut self.0, &mut hold.0, buffer.raw(), &params.0, segment, end)
        }
    }

    /// Has the guest been shown an acknowledgement of bytes that the peer has not acknowledged?
    #[inline]
    pub fn split_owes(&self, hold: &Hold) -> bool {
        // SAFETY: both point to live values of the C types for the length of the call.
        unsafe { native::split_owes(&self.0, &hold.0) }
    }
}
