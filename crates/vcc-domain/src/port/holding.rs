//! A port that holds the guest's segments until the underlay's window admits them
//! (`engine/hold.h`).

use vcc_engine::{Admission, FlowState, Segment, sys};

use super::Port;
use crate::frame::{Frame, Out, Verdict};
use crate::hold::{
    BufferSpec, Held, Waiting, charge_bytes, cut, reparsed_at, set_seq, without_payload,
};
use crate::parse::Parsed;
use crate::table::{Entry, FlowId};

impl Port {
    /// Does the port take another frame from the guest? While its buffer is full, it does not, so
    /// that the guest waits as at a full ring; ask again after each call, and at the next deadline.
    pub fn wants_frames(&self) -> bool {
        self.core.next_read_ns().is_none()
    }

    /// Bytes held for the guest, of the port's buffer.
    pub fn held_bytes(&self) -> u32 {
        self.core.buffer.used_bytes()
    }

    /// Changes the size of the buffer and how flows share it. One that has more than its new size is
    /// full until enough has left.
    pub fn set_buffer(&mut self, buffer: BufferSpec) {
        self.core.buffer.change(buffer.size_bytes, buffer.policy);
        self.core.note_full();
    }

    pub(super) fn is_holding(&self, id: FlowId) -> bool {
        self.core.table.get(id).is_some_and(|entry| entry.held.hold.0.begun != 0)
    }

    /// Records a segment of the guest that goes no further.
    pub(super) fn note_latest(&mut self, id: FlowId, frame: &Frame, parsed: &Parsed) {
        if let Some(Entry { held, .. }) = self.core.table.get_mut(id) {
            held.latest.note(frame, parsed);
        }
    }

    /// A segment of the guest: it passes, is dropped or is held, perhaps in parts.
    pub(super) fn hold_from_guest(
        &mut self,
        id: FlowId,
        frame: &mut Frame,
        parsed: &mut Parsed,
        out: &mut Out,
    ) -> Verdict {
        self.judge_repair(id);
        let Some(Entry { state: flow, held, .. }) = self.core.table.get_mut(id) else {
            return Verdict::Pass;
        };
        held.latest.note(frame, parsed);
        let fate = flow.hold_admit(&held.hold, self.core.treatments.of(flow), &parsed.segment);
        if fate.whole {
            let seq = flow.hold_seq(&held.hold, &parsed.segment);
            if seq != parsed.segment.seq {
                set_seq(frame, parsed, seq);
            }
            return self.leave(id, frame, parsed, out);
        }
        if fate.probe {
            let seq = flow.snd_nxt.wrapping_sub(1);
            self.leave_empty(id, without_payload(frame, parsed), seq, out);
            return Verdict::Held;
        }
        let acks = flow.hold_acks(&parsed.segment);
        let ack = acks.then(|| (parsed.segment, without_payload(frame, parsed)));
        let verdict = self.hold_parts(id, frame, parsed, fate, out);
        if let (Some((said, ack)), Some(Entry { state: flow, .. })) = (ack, self.core.table.get(id))
        {
            // Perhaps a part that left has carried it.
            if flow.hold_acks(&said) {
                self.leave_empty(id, ack, flow.snd_nxt, out);
            }
        }
        verdict
    }

    /// Passes, drops and holds the parts of a segment.
    fn hold_parts(
        &mut self,
        id: FlowId,
        frame: &mut Frame,
        parsed: &mut Parsed,
        fate: Admission,
        out: &mut Out,
    ) -> Verdict {
        let mut rest = Frame { bytes: std::mem::take(&mut frame.bytes), ..*frame };
        if fate.pass_bytes > 0 {
            let first = cut(&mut rest, parsed, fate.pass_bytes as usize);
            let first_parsed = reparsed_at(&first, self.core.now_us());
            self.leave_as(id, first, &first_parsed, out);
            *parsed = reparsed_at(&rest, self.core.now_us());
        }
        if fate.drop_bytes > 0 {
            drop(cut(&mut rest, parsed, fate.drop_bytes as usize));
            *parsed = reparsed_at(&rest, self.core.now_us());
        }
        if !fate.hold {
            return Verdict::Held;
        }
        if out.to_fabric.is_empty()
            && self.leaves_at_once(id, parsed)
            && (parsed.segment.payload_bytes == 0 || self.admits_by_rate(id))
        {
            *frame = rest;
            match self.core.is_full() {
                true => self.pass_unretained(id, &parsed.segment),
                false => self.retain(id, frame, parsed),
            }
            let verdict = self.leave(id, frame, parsed, out);
            self.arm(id);
            return verdict;
        }
        if fate.gap || self.core.is_full() {
            self.core.counters.count(sys::COUNT_DROPPED);
            return Verdict::Held;
        }
        self.keep(id, rest, parsed);
        self.release(id, out);
        Verdict::Held
    }

    /// Sends a frame without payload at another sequence number.
    pub(super) fn leave_empty(&mut self, id: FlowId, mut frame: Frame, seq: u32, out: &mut Out) {
        let mut parsed = reparsed_at(&frame, self.core.now_us());
        set_seq(&mut frame, &mut parsed, seq);
        self.leave_as(id, frame, &parsed, out);
    }

    /// Is nothing held before the segment, and may all of it leave as it is?
    fn leaves_at_once(&self, id: FlowId, parsed: &Parsed) -> bool {
        let Some(Entry { state: flow, held, .. }) = self.core.table.get(id) else { return true };
        let segment = &parsed.segment;
        held.queue.is_empty()
            && held.path.limit_bytes(parsed, self.core.now_us()).is_none()
            && flow.hold_leaves_bytes(&held.hold, self.core.treatments.of(flow), segment)
                >= sequence_bytes(segment)
    }

    fn keep(&mut self, id: FlowId, frame: Frame, parsed: &Parsed) {
        let now_us = self.core.now_us() as u32;
        let Some(Entry { state: flow, held, .. }) = self.core.table.get_mut(id) else { return };
        let end = parsed.segment.seq.wrapping_add(sequence_bytes(&parsed.segment));
        flow.repair_waits(&held.hold, &mut held.sent.recovery, now_us);
        flow.hold_kept(&mut held.hold, &mut self.core.buffer, end, charge_bytes(&frame));
        held.queue.push(Waiting { frame, parsed: parsed.clone() });
        self.core.note_full();
    }

    /// Is something of the connection held, or retained since it has left?
    pub(super) fn has_held(&self, id: FlowId) -> bool {
        let has = |Entry { held, .. }: &Entry| held.hold.retains() || !held.queue.is_empty();
        self.core.table.get(id).is_some_and(has)
    }

    /// Sends what the windows admit of what is held.
    pub(super) fn release(&mut self, id: FlowId, out: &mut Out) {
        self.release_held(id, out);
        self.arm(id);
    }

    fn release_held(&mut self, id: FlowId, out: &mut Out) {
        loop {
            let now_us = self.core.now_us();
            let leaves_bytes = self.leaves_bytes(id);
            if leaves_bytes == 0 {
                return;
            }
            let Some(Entry { held, .. }) = self.core.table.get_mut(id) else { return };
            let Some(front) = held.queue.front_mut() else { return };
            let segment = front.segment();
            let before_bytes = charge_bytes(&front.frame);
            let is_whole = leaves_bytes >= sequence_bytes(segment);
            let part = if is_whole { None } else { Some(front.cut(leaves_bytes as usize)) };
            let stays_bytes = if is_whole { 0 } else { charge_bytes(&front.frame) };
            held.hold.left(&mut self.core.buffer, before_bytes - stays_bytes);
            let Some(mut leaving) = part.or_else(|| held.queue.pop()) else { return };
            leaving.parsed.segment.now_us = now_us;
            held.latest.renew(&mut leaving.frame, &mut leaving.parsed);
            self.retain(id, &leaving.frame, &leaving.parsed);
            self.core.note_left();
            self.leave_as(id, leaving.frame, &leaving.parsed, out);
        }
    }

    /// The sequence numbers of the first held segment that may leave now.
    fn leaves_bytes(&mut self, id: FlowId) -> u32 {
        let now_us = self.core.now_us();
        let Some(Entry { state: flow, held, .. }) = self.core.table.get_mut(id) else { return 0 };
        let Some(front) = held.queue.front() else { return 0 };
        let mut as_sent = *front.segment();
        let limit_bytes = held.path.limit_bytes(&front.parsed, now_us);
        if let Some(limit_bytes) = limit_bytes {
            as_sent.seg_bytes = limit_bytes;
        }
        let by_window = flow.hold_leaves_bytes(&held.hold, self.core.treatments.of(flow), &as_sent);
        let leaves_bytes = limit_bytes.unwrap_or(u32::MAX).min(by_window);
        let waits = leaves_bytes > 0 && as_sent.payload_bytes > 0 && !self.admits_by_rate(id);
        if waits { 0 } else { leaves_bytes }
    }

    /// Sends a frame of the port's own making; its FACK follows it.
    pub(super) fn leave_as(
        &mut self,
        id: FlowId,
        mut frame: Frame,
        parsed: &Parsed,
        out: &mut Out,
    ) {
        let raised = self.snooping.raised(&mut self.core, id, &mut frame, parsed);
        self.leave_as_said(id, frame, raised.as_ref().unwrap_or(parsed), out);
    }

    /// The same, for a frame that acknowledges what was promised.
    pub(super) fn leave_as_said(
        &mut self,
        id: FlowId,
        mut frame: Frame,
        parsed: &Parsed,
        out: &mut Out,
    ) {
        let place = out.to_fabric.len();
        if self.leave_raised(id, &mut frame, parsed, out) == Verdict::Pass {
            out.to_fabric.insert(place, frame);
        }
    }

    /// Shows the guest its first window of the buffer, behind a SYN-ACK.
    pub(super) fn open(&mut self, id: FlowId, out: &mut Out) {
        let Some(Entry { key, state: flow, held, .. }) = self.core.table.get_mut(id) else {
            return;
        };
        if flow.hold_opens(&held.hold, &self.core.buffer, self.core.treatments.of(flow)) {
            let unsent = self.emitter.update(key, flow, &mut out.to_guest);
            self.core.counters.count_unsent(unsent);
        }
    }

    /// Discards what is held for a connection that has ended, perhaps by a RST, or begins anew.
    pub(super) fn end_held(&mut self, id: FlowId, is_reset: bool) {
        let Some(Entry { state: flow, held, .. }) = self.core.table.get_mut(id) else { return };
        held.clear(&mut self.core.buffer);
        held.hold.0.promises = 0;
        self.split.clear(&mut held.slot);
        let begins_anew = u32::from(flow.stage) < sys::STAGE_ESTABLISHED;
        if begins_anew {
            held.hold = Default::default();
        }
        if begins_anew || is_reset {
            self.thinning.drop_ack(&mut self.core, id);
        }
        self.core.note_full();
        self.snooping.note_end(&mut self.core, id, is_reset);
    }

    pub(super) fn forget(&mut self, id: FlowId) {
        self.snooping.forget(&mut self.core, id);
        self.thinning.drop_ack(&mut self.core, id);
        if let Some(Entry { state: flow, held, .. }) = self.core.table.get_mut(id) {
            self.core.treatments.leave(flow);
            held.clear(&mut self.core.buffer);
            self.split.clear(&mut held.slot);
        }
        self.core.note_full();
        self.core.table.remove(id);
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

/// The sequence numbers that the segment occupies.
pub(super) fn sequence_bytes(segment: &Segment) -> u32 {
    let fin = u32::from(segment.flags) & sys::TCP_FIN != 0;
    segment.payload_bytes + u32::from(fin)
}
