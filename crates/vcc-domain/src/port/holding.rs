//! A port that holds the guest's segments until the underlay's window admits them
//! (`engine/hold.h`).

use vcc_engine::{Admission, FlowState, Segment, sys};

use super::core::Core;
use super::pacing::Pacing;
use crate::frame::Frame;
use crate::hold::{Held, Waiting, charge_bytes, sequence_bytes, sequence_end, set_seq, unit_bytes};
use crate::parse::Parsed;
use crate::table::{Entry, FlowId};
use vcc_net::seq::after;

/// The connections whose segments are held, and their turns.
#[derive(Clone, Default)]
pub(super) struct Holding {
    pacing: Pacing,
}

impl Holding {
    /// Turns of the rate of all connections of the guest.
    pub(super) fn pacing(&mut self) -> &mut Pacing {
        &mut self.pacing
    }

    pub(super) fn next_ns(&self) -> Option<u64> {
        self.pacing.next_ns()
    }

    #[inline]
    pub(super) fn is_holding(core: &Core, id: FlowId) -> bool {
        core.table.get(id).is_some_and(|entry| entry.held.hold.0.begun != 0)
    }

    /// Records a segment of the guest that goes no further.
    pub(super) fn note_latest(core: &mut Core, id: FlowId, frame: &Frame, parsed: &Parsed) {
        if let Some(Entry { held, .. }) = core.table.get_mut(id) {
            held.latest.note(frame, parsed);
        }
    }

    /// What becomes of a segment of the guest: it passes, is dropped or is held, perhaps in parts. One
    /// that passes whole may get another sequence number.
    pub(super) fn admit(
        core: &mut Core,
        id: FlowId,
        (frame, parsed): (&mut Frame, &mut Parsed),
    ) -> Option<Admission> {
        let Entry { state: flow, held, .. } = core.table.get_mut(id)?;
        held.latest.note(frame, parsed);
        let fate =
            flow.hold_admit(&mut held.hold, core.treatments.params_of(flow), &parsed.segment);
        if fate.whole {
            let seq = flow.hold_seq(&held.hold, &parsed.segment);
            if seq != parsed.segment.seq {
                set_seq(frame, parsed, seq);
            }
        }
        Some(fate)
    }

    /// Is nothing held before the segment, and may all of it leave as it is?
    pub(super) fn leaves_at_once(core: &Core, id: FlowId, parsed: &Parsed) -> bool {
        let Some(Entry { state: flow, held, .. }) = core.table.get(id) else { return true };
        let segment = &parsed.segment;
        held.queue.is_empty()
            && held.path.limit_bytes(parsed, core.now_us()).is_none()
            && flow.hold_leaves_bytes(&held.hold, core.treatments.params_of(flow), segment)
                >= sequence_bytes(segment)
    }

    /// How much of a segment's payload may be held: none, all, or full segments as far as the flow's
    /// part of the buffer has room.
    pub(super) fn holds_bytes(core: &Core, id: FlowId, (frame, parsed): (&Frame, &Parsed)) -> u32 {
        let segment = &parsed.segment;
        let beyond_bytes = charge_bytes(frame).saturating_sub(core.room_bytes(id, segment));
        if beyond_bytes == 0 {
            return segment.payload_bytes;
        }
        let fits_bytes = segment.payload_bytes.saturating_sub(beyond_bytes);
        fits_bytes - fits_bytes % unit_bytes(segment).max(1)
    }

    /// Holds a segment.
    pub(super) fn keep(core: &mut Core, id: FlowId, mut frame: Frame, parsed: &Parsed) {
        frame.shrink_to_keep();
        let now_us = core.now_us() as u32;
        let Some(Entry { state: flow, held, .. }) = core.table.get_mut(id) else { return };
        flow.repair_waits(&held.hold, &mut held.sent.recovery, now_us);
        let params = core.treatments.params_of(flow);
        let bytes = charge_bytes(&frame);
        flow.hold_kept(&mut held.hold, &mut core.buffer, params, &parsed.segment, bytes);
        held.queue.push(Waiting { frame, parsed: parsed.clone() });
    }

    /// Is what leaves retained and repaired here?
    pub(super) fn retains(core: &Core, id: FlowId) -> bool {
        core.table.get(id).is_some_and(|entry| entry.held.hold.retains())
    }

    /// Keeps a segment behind a gap, if it is within the window that the guest was shown, and the flow's share of the
    /// buffer has room for it.
    pub(super) fn keep_out_of_order(
        core: &mut Core,
        id: FlowId,
        mut frame: Frame,
        parsed: &Parsed,
    ) {
        let bytes = charge_bytes(&frame);
        let end = parsed.segment.seq.wrapping_add(parsed.segment.payload_bytes);
        if core.table.get(id).is_none_or(|it| after(end, it.state.right_edge)) {
            core.counters.count(sys::COUNT_DROPPED);
            return;
        }
        if bytes > core.room_bytes(id, &parsed.segment) {
            core.counters.count(sys::COUNT_NO_BUFFER);
            return;
        }
        frame.shrink_to_keep();
        let Some(Entry { state: flow, held, .. }) = core.table.get_mut(id) else { return };
        if held.out_of_order.keep(Waiting { frame, parsed: parsed.clone() }) {
            let data_bytes = sequence_bytes(&parsed.segment);
            flow.repair_takes(&mut held.hold, &mut core.buffer, data_bytes, bytes);
        }
    }

    /// The first segment that was behind a gap and is no longer, with what the guest has said since. None of those
    /// that the port has by now.
    pub(super) fn next_in_order(core: &mut Core, id: FlowId) -> Option<Waiting> {
        let now_us = core.now_us();
        let Entry { state: flow, held, .. } = core.table.get_mut(id)?;
        loop {
            let nxt = flow.hold_guest_nxt(&held.hold);
            let (mut first, free_bytes) = held.out_of_order.take(nxt)?;
            FlowState::repair_returns(&mut held.hold, &mut core.buffer, free_bytes);
            let segment = &mut first.parsed.segment;
            if after(sequence_end(segment), nxt) {
                segment.now_us = now_us;
                held.latest.renew(&mut first.frame, &mut first.parsed);
                return Some(first);
            }
        }
    }

    /// Is something of the connection held, or retained since it has left?
    pub(super) fn has_held(core: &Core, id: FlowId) -> bool {
        let has = |Entry { held, .. }: &Entry| held.hold.retains() || !held.queue.is_empty();
        core.table.get(id).is_some_and(has)
    }

    /// The next of what is held that the windows and the rate admit.
    #[inline]
    pub(super) fn next_leaving(&mut self, core: &mut Core, id: FlowId) -> Option<Waiting> {
        let now_us = core.now_us();
        let leaves_bytes = self.leaves_bytes(core, id);
        if leaves_bytes == 0 {
            return None;
        }
        let Entry { held, .. } = core.table.get_mut(id)?;
        let front = held.queue.front_mut()?;
        let segment = front.segment();
        let before_bytes = charge_bytes(&front.frame);
        let is_whole = leaves_bytes >= sequence_bytes(segment);
        let part = if is_whole { None } else { Some(front.cut(leaves_bytes as usize)) };
        let stays_bytes = if is_whole { 0 } else { charge_bytes(&front.frame) };
        held.hold.left(&mut core.buffer, before_bytes - stays_bytes);
        let mut leaving = part.or_else(|| held.queue.pop())?;
        leaving.parsed.segment.now_us = now_us;
        held.latest.renew(&mut leaving.frame, &mut leaving.parsed);
        Some(leaving)
    }

    /// The sequence numbers of the first held segment that may leave now.
    fn leaves_bytes(&mut self, core: &mut Core, id: FlowId) -> u32 {
        let now_us = core.now_us();
        let Some(Entry { state: flow, held, .. }) = core.table.get_mut(id) else { return 0 };
        let Some(front) = held.queue.front() else { return 0 };
        let mut as_sent = Segment { now_us, ..*front.segment() };
        let limit_bytes = held.path.limit_bytes(&front.parsed, now_us);
        if let Some(limit_bytes) = limit_bytes {
            as_sent.seg_bytes = limit_bytes;
        }
        let by_window =
            flow.hold_leaves_bytes(&held.hold, core.treatments.params_of(flow), &as_sent);
        let leaves_bytes = limit_bytes.unwrap_or(u32::MAX).min(by_window);
        let waits = leaves_bytes > 0 && as_sent.payload_bytes > 0 && !self.pacing.admits(core, id);
        if waits { 0 } else { leaves_bytes }
    }
}

/// After a segment, perhaps a RST that its receiver believes: has the connection ended, or does it
/// begin anew? After both FINs, what is in
/// flight may have to be repaired.
pub(super) fn ends_held(flow: &FlowState, held: &Held, segment: &Segment, is_reset: bool) -> bool {
    let begins_anew = u32::from(segment.flags) & sys::TCP_SYN != 0 && flow.settled == 0;
    match u32::from(flow.stage) {
        _ if begins_anew => true,
        sys::STAGE_ESTABLISHED => false,
        sys::STAGE_CLOSED => !(held.hold.retains() && flow.flight_bytes() > 0) || is_reset,
        _ => true,
    }
}
