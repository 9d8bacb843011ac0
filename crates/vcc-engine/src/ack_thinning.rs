//! ACKs that wait while the guest does not read its receive ring (`engine/ack_thinning.h`).

use crate::{FlowState, Hold, Params, Segment, native, sys};

/// The last acknowledgement and window field that a guest was shown.
pub type Shown = sys::vcc_shown;

/// What becomes of a segment to the guest, and of the ACK that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thin {
    /// It passes, and nothing waits.
    Pass,
    /// It passes behind what waits.
    Behind,
    /// It passes, and covers all that the waiting ACK says.
    Instead,
    /// It waits, instead of what does.
    Wait,
}

/// Does the guest have frames to read, by the buffers that its receive ring has free and had at most?
pub fn is_ring_crowded(free_segs: u32, added_segs: u32) -> bool {
    // SAFETY: it takes no pointers.
    unsafe { native::is_ring_crowded(free_segs, added_segs) }
}

impl FlowState {
    /// After [`FlowState::hold_to_guest`] has passed a segment that the guest accepts: `segment` as
    /// the guest would see it, `last` as of before it.
    pub fn thin_ack(
        &self,
        hold: &Hold,
        params: &Params,
        waiting: Option<&Segment>,
        last: &Shown,
        segment: &Segment,
        crowded: bool,
    ) -> Thin {
        let waiting = waiting.map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: all point to live values of the C types for the length of the call, or to none.
        let thin = unsafe {
            native::thin_ack(&self.0, &hold.0, &params.0, waiting, last, segment, crowded)
        };
        match thin {
            sys::THIN_BEHIND => Thin::Behind,
            sys::THIN_INSTEAD => Thin::Instead,
            sys::THIN_WAIT => Thin::Wait,
            _ => Thin::Pass,
        }
    }
}
