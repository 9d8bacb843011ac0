//! A port that holds the guest's segments until the underlay's window admits them
//! (`engine/hold.h`).

use vcc_engine::{Admission, FlowState, Segment, sys};

use super::Port;
use crate::frame::{Frame, Out, Verdict};
use crate::hold::{
    BufferSpec, Held, Waiting, charge_bytes, cut, reparsed_at, set_seq, without_payload,
};
use crate::key::FlowKey;
use crate::parse::Parsed;

/// A buffer that nothing leaves for this long is full of segments to peers that do not take them.
/// Reading goes on then, for the guest's other connections, and new data without room is dropped.
const STALLED_NS: u64 = 200_000_000;

impl Port {
    /// Does the port take another frame from the guest? While its buffer is full, it does not, so
    /// that the guest waits as at a full ring; ask again after each call, and at the next deadline.
    pub fn wants_frames(&self) -> bool {
        self.next_read_ns().is_none()
    }

    /// Bytes held for the guest, of the port's buffer.
    pub fn held_bytes(&self) -> u32 {
        self.buffer.used_bytes()
    }

    /// Changes the size of the buffer and how flows share it. One that has more than its new size is
    /// full until enough has left.
    pub fn set_buffer(&mut self, buffer: BufferSpec) {
        self.buffer.change(buffer.size_bytes, buffer.policy);
        self.note_full();
    }

    /// When a full port reads again though nothing leaves; None if it reads now.
    pub(super) fn next_read_ns(&self) -> Option<u64> {
        let read_ns = self.full_since_ns?.saturating_add(STALLED_NS);
        (read_ns > self.now_ns).then_some(read_ns)
    }

    fn is_full(&self) -> bool {
        self.buffer.used_bytes() >= self.buffer.size_bytes()
    }

    pub(super) fn is_holding(&self, key: &FlowKey) -> bool {
        self.table.held(key).is_some_and(|held| held.hold.0.begun != 0)
    }

    /// Records a segment of the guest that goes no further.
    pub(super) fn note_latest(&mut self, frame: &Frame, parsed: &Parsed) {
        if let Some((_, held)) = self.table.holding(&parsed.key) {
            held.latest.note(frame, parsed);
        }
    }

    /// A segment of the guest: it passes, is dropped or is held, perhaps in parts.
    pub(super) fn hold_from_guest(
        &mut self,
        frame: &mut Frame,
        mut parsed: Parsed,
        out: &mut Out,
    ) -> Verdict {
        self.judge_repair(&parsed.key);
        let Some((flow, held)) = self.table.holding(&parsed.key) else { return Verdict::Pass };
        held.latest.note(frame, &parsed);
        let fate = flow.hold_admit(&held.hold, self.treatments.of(flow), &parsed.segment);
        if fate.whole {
            let seq = flow.hold_seq(&held.hold, &parsed.segment);
            if seq != parsed.segment.seq {
                set_seq(frame, &mut parsed, seq);
            }
            return self.leave(frame, &parsed, out);
        }
        if fate.probe {
            let seq = flow.snd_nxt.wrapping_sub(1);
            self.leave_empty(without_payload(frame, &parsed), seq, out);
            return Verdict::Held;
        }
        let (key, said) = (parsed.key, parsed.segment);
        let ack = flow.hold_acks(&said).then(|| without_payload(frame, &parsed));
        let verdict = self.hold_parts(frame, parsed, fate, out);
        if let (Some(ack), Some(flow)) = (ack, self.table.get(&key)) {
            // Perhaps what left has told it.
            if flow.hold_acks(&said) {
                self.leave_empty(ack, flow.snd_nxt, out);
            }
        }
        verdict
    }

    /// Passes, drops and holds the parts of a segment.
    fn hold_parts(
        &mut self,
        frame: &mut Frame,
        mut parsed: Parsed,
        fate: Admission,
        out: &mut Out,
    ) -> Verdict {
        let mut rest = Frame { bytes: std::mem::take(&mut frame.bytes), ..*frame };
        if fate.pass_bytes > 0 {
            let first = cut(&mut rest, &parsed, fate.pass_bytes as usize);
            let first_parsed = reparsed_at(&first, self.now_us());
            self.leave_as(first, &first_parsed, out);
            parsed = reparsed_at(&rest, self.now_us());
        }
        if fate.drop_bytes > 0 {
            drop(cut(&mut rest, &parsed, fate.drop_bytes as usize));
            parsed = reparsed_at(&rest, self.now_us());
        }
        if !fate.hold {
            return Verdict::Held;
        }
        if out.to_fabric.is_empty() && self.leaves_at_once(&parsed) {
            *frame = rest;
            match self.is_full() {
                true => self.pass_unretained(&parsed),
                false => self.retain(frame, &parsed),
            }
            let verdict = self.leave(frame, &parsed, out);
            self.arm(&parsed.key);
            return verdict;
        }
        if fate.gap || self.is_full() {
            self.counters.count(sys::COUNT_DROPPED);
            return Verdict::Held;
        }
        self.keep(rest, &parsed);
        self.release(&parsed.key, out);
        Verdict::Held
    }

    /// Sends a frame without payload at another sequence number.
    pub(super) fn leave_empty(&mut self, mut frame: Frame, seq: u32, out: &mut Out) {
        let mut parsed = reparsed_at(&frame, self.now_us());
        set_seq(&mut frame, &mut parsed, seq);
        self.leave_as(frame, &parsed, out);
    }

    /// Is nothing held before the segment, and may all of it leave?
    fn leaves_at_once(&mut self, parsed: &Parsed) -> bool {
        let Some((flow, held)) = self.table.holding(&parsed.key) else { return true };
        let whole_bytes = sequence_bytes(&parsed.segment);
        held.queue.is_empty()
            && flow.hold_leaves_bytes(&held.hold, self.treatments.of(flow), &parsed.segment)
                >= whole_bytes
    }

    fn keep(&mut self, frame: Frame, parsed: &Parsed) {
        let now_us = self.now_us() as u32;
        let Some((flow, held)) = self.table.holding(&parsed.key) else { return };
        let end = parsed.segment.seq.wrapping_add(sequence_bytes(&parsed.segment));
        flow.repair_waits(&held.hold, &mut held.sent.recovery, now_us);
        flow.hold_kept(&mut held.hold, &mut self.buffer, end, charge_bytes(&frame));
        held.queue.push(Waiting { frame, segment: parsed.segment });
        self.note_full();
    }

    /// The buffer has become full, or has room again.
    pub(super) fn note_full(&mut self) {
        if !self.is_full() {
            self.full_since_ns = None;
        } else {
            self.full_since_ns.get_or_insert(self.now_ns);
        }
    }

    /// Sends what the windows admit of what is held.
    pub(super) fn release(&mut self, key: &FlowKey, out: &mut Out) {
        self.release_held(key, out);
        self.arm(key);
    }

    fn release_held(&mut self, key: &FlowKey, out: &mut Out) {
        loop {
            let now_us = self.now_us();
            let Some((flow, held)) = self.table.holding(key) else { return };
            let Some(front) = held.queue.front_mut() else { return };
            front.segment.now_us = now_us;
            let leaves_bytes =
                flow.hold_leaves_bytes(&held.hold, self.treatments.of(flow), &front.segment);
            let limit_bytes = held.sent.limit_bytes(front.segment.seq, key.is_ipv6());
            let is_small = front.segment.payload_bytes <= limit_bytes;
            let leaves_bytes = if is_small { leaves_bytes } else { leaves_bytes.min(limit_bytes) };
            if leaves_bytes == 0 {
                return;
            }
            let before_bytes = charge_bytes(&front.frame);
            let mut frame = if leaves_bytes < sequence_bytes(&front.segment) {
                let first = front.cut(leaves_bytes as usize);
                held.hold.left(&mut self.buffer, before_bytes - charge_bytes(&front.frame));
                first
            } else {
                let Some(frame) = held.queue.pop() else { return };
                held.hold.left(&mut self.buffer, before_bytes);
                frame
            };
            let mut parsed = reparsed_at(&frame, now_us);
            held.latest.renew(&mut frame, &mut parsed);
            self.retain(&frame, &parsed);
            self.full_since_ns = self.is_full().then_some(self.now_ns);
            self.leave_as(frame, &parsed, out);
        }
    }

    /// Sends a frame of the port's own making; its FACK follows it.
    pub(super) fn leave_as(&mut self, mut frame: Frame, parsed: &Parsed, out: &mut Out) {
        let place = out.to_fabric.len();
        if self.leave(&mut frame, parsed, out) == Verdict::Pass {
            out.to_fabric.insert(place, frame);
        }
    }

    /// Shows the guest its first window of the buffer, behind a SYN-ACK.
    pub(super) fn open(&mut self, key: &FlowKey, out: &mut Out) {
        let Some((flow, held)) = self.table.holding(key) else { return };
        if flow.hold_opens(&held.hold, &self.buffer, self.treatments.of(flow)) {
            let unsent = self.emitter.update(key, flow, &mut out.to_guest);
            self.counters.count_unsent(unsent);
        }
    }

    /// Discards what is held for a connection that has ended, perhaps by a RST, or begins anew.
    pub(super) fn end_held(&mut self, key: &FlowKey, is_reset: bool) {
        let Some((flow, held)) = self.table.holding(key) else { return };
        held.clear(&mut self.buffer);
        held.hold.0.promises = 0;
        self.promises.clear(&mut held.slot);
        if u32::from(flow.stage) < sys::STAGE_ESTABLISHED {
            held.hold = Default::default();
        }
        self.note_full();
        self.end_snooped(key, is_reset);
    }

    pub(super) fn forget(&mut self, key: &FlowKey) {
        self.forget_snooped(key);
        if let Some((flow, held)) = self.table.holding(key) {
            self.treatments.leave(flow);
            held.clear(&mut self.buffer);
            self.promises.clear(&mut held.slot);
        }
        self.note_full();
        self.table.remove(key);
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
