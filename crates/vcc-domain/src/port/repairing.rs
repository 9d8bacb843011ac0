//! A port that retains what has left until it is acknowledged, and repairs its losses
//! (`engine/repair.h`).

use vcc_engine::{RepairTimer, Retained, Segment, sys};

use super::holding::sequence_bytes;
use super::{NS_PER_US, Port};
use crate::frame::{Frame, Out};
use crate::hold::{
    Kept, Waiting, charge_bytes, reparsed, set_ack, strip_sack, unit_bytes, without_payload,
};
use crate::options::sack_blocks;
use crate::parse::Parsed;
use crate::table::{Entry, FlowId};
use vcc_net::seq::before;

/// A flow's state before an ACK.
#[derive(Clone, Copy)]
pub(super) struct Before {
    una: u32,
    ca_state: u8,
}

impl Port {
    /// Begins or ends retaining what leaves, if the treatment has changed.
    pub(super) fn judge_repair(&mut self, id: FlowId) -> Option<Before> {
        let now_us = self.core.now_us() as u32;
        let Entry { state: flow, held, .. } = self.core.table.get_mut(id)?;
        let recovery = &mut held.sent.recovery;
        if flow.repair_judge(&mut held.hold, recovery, self.core.treatments.of(flow), now_us) {
            held.discard_sent(&mut self.core.buffer);
        }
        Some(Before { una: flow.snd_una, ca_state: flow.ca_state })
    }

    /// A segment is about to leave, and a full buffer has no room for it: its loss is the guest's to
    /// repair.
    pub(super) fn pass_unretained(&mut self, id: FlowId, segment: &Segment) {
        let (now_us, end) = (self.core.now_us() as u32, sequence_end(segment));
        let Some(Entry { state: flow, held, .. }) = self.core.table.get_mut(id) else { return };
        if held.hold.retains() {
            flow.repair_passes(&mut held.hold, &mut held.sent.recovery, end, now_us);
        }
    }

    /// Retains a segment that is about to leave for the first time.
    pub(super) fn retain(&mut self, id: FlowId, frame: &Frame, parsed: &Parsed) {
        let now_us = self.core.now_us();
        let Some(Entry { state: flow, held, .. }) = self.core.table.get_mut(id) else { return };
        if !held.hold.retains() {
            return;
        }
        let (seq, end) = (parsed.segment.seq, sequence_end(&parsed.segment));
        let fin = u8::from(u32::from(parsed.segment.flags) & sys::TCP_FIN != 0);
        let facts = Retained { seq, end, sent_us: now_us as u32, fin, ..Default::default() };
        flow.repair_sent(&mut held.hold, &mut held.sent.recovery, &facts);
        let mut frame = frame.clone();
        let mut parsed = parsed.clone();
        strip_sack(&mut frame, &mut parsed);
        let waiting = Waiting { frame, parsed };
        flow.repair_charge(&mut held.hold, &mut self.core.buffer, charge_bytes(&waiting.frame));
        held.sent.push(Kept { waiting, facts });
        self.core.note_full();
    }

    /// After the engine has seen a segment to the guest: accounts for what it acknowledges, if the
    /// guest `hears` it, and hides the losses that are repaired here.
    pub(super) fn repair_to_guest(
        &mut self,
        id: FlowId,
        frame: &mut Frame,
        parsed: &mut Parsed,
        before: Option<Before>,
        passes: bool,
        hears: bool,
    ) {
        let now_us = self.core.now_us();
        let Some(Entry { state: flow, held, .. }) = self.core.table.get_mut(id) else { return };
        let Some(before) = before.filter(|_| held.hold.retains()) else { return };
        if hears {
            let sent = &mut held.sent;
            let is_sacked = parsed.places.sack_at.is_some();
            let mut taken_bytes = 0;
            let free_bytes = sent.acked(flow.snd_una, now_us as u32);
            held.path.acked(flow.snd_una);
            if let Some((at, bytes)) = parsed.sack_at() {
                for (left, right) in sack_blocks(&frame.bytes[at..at + bytes]) {
                    // A block of data that is not in flight reports no gap (RFC 2883: DSACK).
                    let flight_bytes = flow.flight_bytes();
                    let from = left.wrapping_sub(flow.snd_una);
                    if from < flight_bytes && right.wrapping_sub(left) <= flight_bytes - from {
                        taken_bytes += sent.sacked((left, right), now_us as u32);
                    }
                }
            }
            flow.repair_on_ack(
                &mut held.hold,
                &mut sent.recovery,
                &parsed.segment,
                before.una,
                before.ca_state,
            );
            // In order and without losses, there is nothing to detect.
            if is_sacked
                || sent.recovery.0.sacked_bytes > 0
                || u32::from(flow.ca_state) > sys::CA_CWR
            {
                sent.detect(flow, now_us);
            }
            held.hold.left(&mut self.core.buffer, free_bytes);
            flow.repair_charge(&mut held.hold, &mut self.core.buffer, taken_bytes);
        }
        if passes && flow.hold_covers(&held.hold) {
            strip_sack(frame, parsed);
        }
        let ack = held.hold.split_ack(parsed.segment.ack);
        if passes && hears && ack != parsed.segment.ack {
            set_ack(frame, parsed, ack);
        }
        self.core.note_full();
    }

    /// Sends lost segments again, as far as the windows admit.
    pub(super) fn resend(&mut self, id: FlowId, out: &mut Out) {
        let now_us = self.core.now_us();
        loop {
            let Some(Entry { state: flow, held, .. }) = self.core.table.get_mut(id) else { return };
            if !held.hold.retains() {
                return;
            }
            let Some(at) = held.sent.first_lost() else { break };
            let free_bytes = held.sent.trim(at, flow.snd_una, now_us as u32);
            held.hold.left(&mut self.core.buffer, free_bytes);
            let Some(kept) = held.sent.get(at) else { break };
            if let Some(limit_bytes) = held.path.limit_bytes(&kept.waiting.parsed, now_us) {
                let taken_bytes = held.sent.cut(at, limit_bytes);
                flow.repair_charge(&mut held.hold, &mut self.core.buffer, taken_bytes);
                continue;
            }
            let unit_bytes = unit_bytes(kept.waiting.segment());
            let whole_bytes = kept.facts.end.wrapping_sub(kept.facts.seq);
            let leaves_bytes = flow.repair_leaves_bytes(
                &held.hold,
                &held.sent.recovery,
                self.core.treatments.of(flow),
                &kept.facts,
                unit_bytes,
            );
            if leaves_bytes == 0 {
                break;
            }
            if leaves_bytes < whole_bytes {
                let taken_bytes = held.sent.cut(at, leaves_bytes);
                flow.repair_charge(&mut held.hold, &mut self.core.buffer, taken_bytes);
            }
            if !self.admits_by_rate(id) {
                break;
            }
            self.send_again(id, at, out);
        }
    }

    /// Sends a segment again, with the guest's latest acknowledgement, window and timestamps.
    fn send_again(&mut self, id: FlowId, at: usize, out: &mut Out) {
        let now_us = self.core.now_us();
        let Some(Entry { state: flow, held, .. }) = self.core.table.get(id) else { return };
        let Some(kept) = held.sent.get(at) else { return };
        let (Waiting { mut frame, mut parsed }, before) = (kept.waiting.clone(), flow.ca_state);
        parsed.segment.now_us = now_us;
        held.latest.renew(&mut frame, &mut parsed);
        self.leave_as(id, frame, &parsed, out);
        let Some(Entry { state: flow, held, .. }) = self.core.table.get_mut(id) else { return };
        let Some((kept, recovery)) = held.sent.with_recovery(at) else { return };
        flow.repair_resent(&mut held.hold, recovery, &mut kept.facts, now_us as u32, before);
    }

    /// When the next timer of a flow goes off, at the earliest.
    pub(super) fn next_repair_ns(&self) -> Option<u64> {
        self.repairs.next_ns()
    }

    /// Processes the timers that have expired.
    pub(super) fn advance_repairs(&mut self, out: &mut Out) {
        while let Some((at_ns, key)) = self.repairs.pop(self.core.now_ns) {
            let Some(id) = self.core.table.find(&key) else { continue };
            let Some(Entry { held, .. }) = self.core.table.get_mut(id) else { continue };
            if held.sent.timer_ns != Some(at_ns) {
                continue;
            }
            held.sent.timer_ns = None;
            self.judge_repair(id);
            self.expire(id, out);
            self.resend(id, out);
            self.release(id, out);
            self.split.record(&mut self.core, id);
        }
    }

    /// Acts on the timer of a flow, if it has expired.
    fn expire(&mut self, id: FlowId, out: &mut Out) {
        let now_us = self.core.now_us();
        let Some(Entry { state: flow, held, .. }) = self.core.table.get_mut(id) else { return };
        if held.sent.reorder_due_us().is_some_and(|due_us| due_us <= now_us) {
            held.sent.detect(flow, now_us);
        }
        let waits = held.has_blocked_data();
        let due = flow.repair_due(
            &held.hold,
            &held.sent.recovery,
            self.core.treatments.of(flow),
            now_us as u32,
            waits,
        );
        let Some((0, timer)) = due else { return };
        match timer {
            RepairTimer::GiveUp => self.break_promise(id, out),
            RepairTimer::Timeout => {
                flow.repair_timeout(&mut held.sent.recovery, now_us as u32);
                let waits_until = held.queue.back().map(|last| sequence_end(last.segment()));
                let timeouts = held.sent.recovery.0.timeouts;
                held.path.note_timeout(timeouts, waits_until.unwrap_or(flow.snd_nxt));
                held.sent.lose_all();
            }
            RepairTimer::Probe => {
                flow.repair_probed(&mut held.sent.recovery);
                let Some((at, taken_bytes)) = held.sent.last(&held.path, now_us) else { return };
                flow.repair_charge(&mut held.hold, &mut self.core.buffer, taken_bytes);
                let facts = held.sent.get(at).map(|kept| kept.facts).unwrap_or_default();
                // Law 14: the peer may have shrunk its window since.
                if facts.sacked == 0 && !before(held.hold.0.peer_edge, facts.end) {
                    self.send_again(id, at, out);
                }
            }
            RepairTimer::Persist => {
                held.sent.recovery.persisted(now_us as u32);
                let seq = flow.snd_una.wrapping_sub(1);
                if let Some(Waiting { frame, parsed }) = held.any() {
                    let mut empty = without_payload(frame, parsed);
                    let mut parsed = reparsed(&empty);
                    held.latest.renew(&mut empty, &mut parsed);
                    self.leave_empty(id, empty, seq, out);
                }
            }
        }
    }

    /// Sets the flow's timer, if it must go off earlier than it is set to.
    pub(super) fn arm(&mut self, id: FlowId) {
        let now_us = self.core.now_us();
        let Some(Entry { key, state: flow, held, .. }) = self.core.table.get_mut(id) else {
            return;
        };
        if !held.hold.retains() {
            return;
        }
        let waits = held.has_blocked_data();
        let due = flow.repair_due(
            &held.hold,
            &held.sent.recovery,
            self.core.treatments.of(flow),
            now_us as u32,
            waits,
        );
        let dues = [due.map(|(in_us, _)| now_us + u64::from(in_us)), held.sent.reorder_due_us()];
        let Some(due_us) = dues.into_iter().flatten().min() else { return };
        let due_ns = (due_us * NS_PER_US).max(self.core.now_ns + 1);
        self.repairs.set(&mut held.sent.timer_ns, due_ns, key);
    }
}

/// One past the last sequence number that the segment occupies.
fn sequence_end(segment: &Segment) -> u32 {
    segment.seq.wrapping_add(sequence_bytes(segment))
}
