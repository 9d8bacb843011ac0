//! Repairing the losses of a flow whose segments the shell retains (`engine/repair.h`).

use crate::{Buffer, FlowState, Hold, Params, Segment, native, sys};

/// What is known of a segment that has left and is retained.
pub type Retained = sys::vcc_retained;

/// A timer of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairTimer {
    /// A tail loss probe is due: the last segment again.
    Probe,
    /// The retransmission timer: all that is retained counts as lost.
    Timeout,
    /// What was promised to the guest cannot be delivered.
    GiveUp,
    /// The persist timer: an empty segment asks for the peer's window.
    Persist,
}

/// The state of a flow's repair besides [`Hold`], in a shell that retains what leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Recovery(pub sys::vcc_repair);

impl Recovery {
    /// A SACK block covers the segment.
    #[inline]
    pub fn sacked(&mut self, retained: &mut Retained, now_us: u32) {
        // SAFETY: both point to live values of the C types for the length of the call.
        unsafe { native::repair_sacked(&mut self.0, retained, now_us) }
    }

    /// The segment is acknowledged, and no longer retained.
    #[inline]
    pub fn acked(&mut self, retained: &Retained, now_us: u32) {
        // SAFETY: both point to live values of the C types for the length of the call.
        unsafe { native::repair_acked(&mut self.0, retained, now_us) }
    }

    /// The segment counts as lost.
    #[inline]
    pub fn lost(&mut self, retained: &mut Retained) {
        // SAFETY: both point to live values of the C types for the length of the call.
        unsafe { native::repair_lost(&mut self.0, retained) }
    }

    /// After a timeout: the segment counts as lost, even if SACK blocks have covered it (RFC 2018,
    /// 8).
    #[inline]
    pub fn forget_sack(&mut self, retained: &mut Retained) {
        // SAFETY: both point to live values of the C types for the length of the call.
        unsafe { native::repair_forget_sack(&mut self.0, retained) }
    }

    /// The persist timer expired.
    #[inline]
    pub fn persisted(&mut self, now_us: u32) {
        // SAFETY: a live value of the C type.
        unsafe { native::repair_persisted(&mut self.0, now_us) }
    }
}

impl Hold {
    /// Does the shell retain what leaves?
    #[inline]
    pub fn retains(&self) -> bool {
        self.0.retains != 0
    }
}

impl FlowState {
    /// Does the shell retain all that is in flight, so that it repairs the flow's losses?
    #[inline]
    pub fn hold_covers(&self, hold: &Hold) -> bool {
        // SAFETY: both point to live values of the C types for the length of the call.
        unsafe { native::hold_covers(&self.0, &hold.0) }
    }

    /// Is this a RST that its receiver believes?
    #[inline]
    pub fn is_reset(&self, segment: &Segment, from_guest: bool) -> bool {
        // SAFETY: both point to live values of the C types for the length of the call.
        let is_believed = || unsafe { native::is_reset(&self.0, segment, from_guest) };
        u32::from(segment.flags) & sys::TCP_RST != 0 && is_believed()
    }

    /// Begins or ends retaining what leaves, as the treatment demands. Returns whether what is
    /// retained must be discarded.
    #[inline]
    #[must_use]
    pub fn repair_judge(
        &self,
        hold: &mut Hold,
        repair: &mut Recovery,
        params: &Params,
        now_us: u32,
    ) -> bool {
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe { native::repair_judge(&self.0, &mut hold.0, &mut repair.0, &params.0, now_us) }
    }

    /// What has left takes `bytes` of the buffer.
    #[inline]
    pub fn repair_charge(&self, hold: &mut Hold, buffer: &mut Buffer, bytes: u32) {
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe { native::repair_charge(&self.0, &mut hold.0, buffer.raw_mut(), bytes) }
    }

    /// New data of the guest is about to leave at once, and takes `bytes` of the buffer while it is retained.
    #[inline]
    pub fn repair_takes(&self, hold: &mut Hold, buffer: &mut Buffer, data_bytes: u32, bytes: u32) {
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe {
            native::repair_takes(&self.0, &mut hold.0, buffer.raw_mut(), data_bytes, bytes);
        }
    }

    /// What [`FlowState::repair_takes`] has taken is free, and will be taken again by what becomes of the segment.
    #[inline]
    pub fn repair_returns(hold: &mut Hold, buffer: &mut Buffer, bytes: u32) {
        // SAFETY: both point to live values of the C types for the length of the call.
        unsafe { native::repair_returns(&mut hold.0, buffer.raw_mut(), bytes) }
    }

    /// A segment is about to leave for the first time, and is retained.
    #[inline]
    pub fn repair_sent(&self, hold: &mut Hold, repair: &mut Recovery, retained: &Retained) {
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe { native::repair_sent(&self.0, &mut hold.0, &mut repair.0, retained) }
    }

    /// A segment is about to be held.
    #[inline]
    pub fn repair_waits(&self, hold: &Hold, repair: &mut Recovery, now_us: u32) {
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe { native::repair_waits(&self.0, &hold.0, &mut repair.0, now_us) }
    }

    /// A segment up to `end` is about to leave, and is not retained.
    #[inline]
    pub fn repair_passes(&self, hold: &mut Hold, repair: &mut Recovery, end: u32, now_us: u32) {
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe { native::repair_passes(&self.0, &mut hold.0, &mut repair.0, end, now_us) }
    }

    /// An ACK of the peer, after its segments have been accounted for; `una_before` and
    /// `state_before` are the flow's before it.
    #[inline]
    pub fn repair_on_ack(
        &self,
        hold: &mut Hold,
        repair: &mut Recovery,
        segment: &Segment,
        una_before: u32,
        state_before: u8,
    ) {
        let state_before = state_before.into();
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe {
            native::repair_on_ack(
                &self.0,
                &mut hold.0,
                &mut repair.0,
                segment,
                una_before,
                state_before,
            );
        }
    }

    /// Time until the segment counts as lost: 0 if it does, None if nothing shows that it is lost.
    #[inline]
    pub fn repair_lost_in_us(
        &self,
        repair: &Recovery,
        retained: &Retained,
        now_us: u32,
    ) -> Option<u32> {
        // SAFETY: all point to live values of the C types for the length of the call.
        let in_us = unsafe { native::repair_lost_in_us(&self.0, &repair.0, retained, now_us) };
        (in_us != sys::REPAIR_NEVER_US).then_some(in_us)
    }

    /// How much of a lost segment may be sent again now, in sequence numbers.
    #[inline]
    pub fn repair_leaves_bytes(
        &self,
        hold: &Hold,
        repair: &Recovery,
        params: &Params,
        retained: &Retained,
        unit_bytes: u32,
    ) -> u32 {
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe {
            native::repair_leaves_bytes(
                &self.0, &hold.0, &repair.0, &params.0, retained, unit_bytes,
            )
        }
    }

    /// A segment was sent again and has passed the engine, whose state was `before`.
    #[inline]
    pub fn repair_resent(
        &self,
        hold: &mut Hold,
        repair: &mut Recovery,
        retained: &mut Retained,
        now_us: u32,
        before: u8,
    ) {
        let before = before.into();
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe {
            native::repair_resent(&self.0, &mut hold.0, &mut repair.0, retained, now_us, before);
        }
    }

    /// The timer that expires next, and the time until then; `waits`: something is held, or lost,
    /// that may not leave.
    #[inline]
    pub fn repair_due(
        &self,
        hold: &Hold,
        repair: &Recovery,
        params: &Params,
        now_us: u32,
        waits: bool,
    ) -> Option<(u32, RepairTimer)> {
        // SAFETY: all point to live values of the C types for the length of the call.
        let due =
            unsafe { native::repair_due(&self.0, &hold.0, &repair.0, &params.0, now_us, waits) };
        let timer = match due.timer {
            sys::REPAIR_PROBE => RepairTimer::Probe,
            sys::REPAIR_TIMEOUT => RepairTimer::Timeout,
            sys::REPAIR_GIVE_UP => RepairTimer::GiveUp,
            sys::REPAIR_PERSIST => RepairTimer::Persist,
            _ => return None,
        };
        Some((due.in_us, timer))
    }

    /// The last segment was sent again as a probe.
    #[inline]
    pub fn repair_probed(&self, repair: &mut Recovery) {
        // SAFETY: both point to live values of the C types for the length of the call.
        unsafe { native::repair_probed(&self.0, &mut repair.0) }
    }

    /// The retransmission timer expired.
    #[inline]
    pub fn repair_timeout(&mut self, repair: &mut Recovery, now_us: u32) {
        // SAFETY: both point to live values of the C types for the length of the call.
        unsafe { native::repair_timeout(&mut self.0, &mut repair.0, now_us) }
    }
}
