//! A port that retains what has left until it is acknowledged, and repairs its losses
//! (`engine/repair.h`).

use vcc_engine::{FlowState, RepairTimer, Retained, Segment, sys};

use super::NS_PER_US;
use super::core::Core;
use crate::frame::Frame;
use crate::hold::{
    Kept, Waiting, charge_bytes, reparsed, sequence_bytes, sequence_end, set_ack, strip_sack,
    unit_bytes, without_payload,
};
use crate::options::sack_blocks;
use crate::parse::Parsed;
use crate::table::{Entry, FlowId};
use crate::timers::Timers;
use vcc_net::seq::before;

/// A flow's state before an ACK, or before it sends a segment again.
#[derive(Clone, Copy)]
pub(super) struct Before {
    una: u32,
    ca_state: u8,
}

impl Before {
    fn from_flow(flow: &FlowState) -> Self {
        Before { una: flow.snd_una, ca_state: flow.ca_state }
    }
}

/// A port's timers for what has left.
#[derive(Clone, Default)]
pub(super) struct Repair {
    timers: Timers,
}

/// What a timer that has gone off demands.
pub(super) enum Expired {
    Nothing,
    /// The peer does not answer.
    GiveUp,
    /// To send the segment at this place again.
    Again(usize),
    /// To send a frame without payload at this sequence number.
    Empty(Frame, u32),
}

impl Repair {
    /// Begins or ends retaining what leaves, if the treatment has changed.
    #[inline]
    pub(super) fn judge(core: &mut Core, id: FlowId) -> Option<Before> {
        let sys::vcc_hold { begun, retains, promises, .. } = core.table.get(id)?.held.hold.0;
        // Where nothing is held, nothing is retained or promised.
        if begun | retains | promises == 0 { None } else { Self::judge_holding(core, id) }
    }

    fn judge_holding(core: &mut Core, id: FlowId) -> Option<Before> {
        let now_us = core.now_us() as u32;
        let Entry { state: flow, held, .. } = core.table.get_mut(id)?;
        let recovery = &mut held.sent.recovery;
        if flow.repair_judge(&mut held.hold, recovery, core.treatments.params_of(flow), now_us) {
            held.discard_sent(&mut core.buffer);
        }
        Some(Before::from_flow(flow))
    }

    /// A segment is about to leave, and the flow's share of the buffer has no room for it: its loss is the guest's
    /// to repair.
    pub(super) fn pass_unretained(core: &mut Core, id: FlowId, segment: &Segment) {
        let (now_us, end) = (core.now_us() as u32, sequence_end(segment));
        let Some(Entry { state: flow, held, .. }) = core.table.get_mut(id) else { return };
        if held.hold.retains() {
            flow.repair_passes(&mut held.hold, &mut held.sent.recovery, end, now_us);
        }
    }

    /// Retains a segment of the guest that is about to leave at once.
    pub(super) fn retain_new(core: &mut Core, id: FlowId, frame: &Frame, parsed: &Parsed) {
        let Some(bytes) = Self::keep_sent(core, id, frame, parsed) else { return };
        let Some(Entry { state: flow, held, .. }) = core.table.get_mut(id) else { return };
        let data_bytes = sequence_bytes(&parsed.segment);
        flow.repair_takes(&mut held.hold, &mut core.buffer, data_bytes, bytes);
    }

    /// Retains a segment that was held and is about to leave.
    pub(super) fn retain_held(core: &mut Core, id: FlowId, frame: &Frame, parsed: &Parsed) {
        let Some(bytes) = Self::keep_sent(core, id, frame, parsed) else { return };
        let Some(Entry { state: flow, held, .. }) = core.table.get_mut(id) else { return };
        flow.repair_charge(&mut held.hold, &mut core.buffer, bytes);
    }

    /// Returns the bytes of the buffer that a copy takes; None if none is kept.
    fn keep_sent(core: &mut Core, id: FlowId, frame: &Frame, parsed: &Parsed) -> Option<u32> {
        let now_us = core.now_us();
        let Entry { state: flow, held, .. } = core.table.get_mut(id)?;
        if !held.hold.retains() {
            return None;
        }
        let (seq, end) = (parsed.segment.seq, sequence_end(&parsed.segment));
        let fin = u8::from(u32::from(parsed.segment.flags) & sys::TCP_FIN != 0);
        let facts = Retained { seq, end, sent_us: now_us as u32, fin, ..Default::default() };
        flow.repair_sent(&mut held.hold, &mut held.sent.recovery, &facts);
        let mut frame = core.spare.copy(frame);
        let mut parsed = parsed.clone();
        strip_sack(&mut frame, &mut parsed);
        let bytes = charge_bytes(&frame);
        held.sent.push(Kept { waiting: Waiting { frame, parsed }, facts });
        Some(bytes)
    }

    /// After the engine has seen a segment to the guest: accounts for what it acknowledges, if the
    /// guest `hears` it, and hides the losses that are repaired here.
    #[inline]
    pub(super) fn to_guest(
        core: &mut Core,
        id: FlowId,
        (frame, parsed): (&mut Frame, &mut Parsed),
        before: Option<Before>,
        passes: bool,
        hears: bool,
    ) {
        let now_us = core.now_us();
        let Some(Entry { state: flow, held, .. }) = core.table.get_mut(id) else { return };
        let Some(before) = before.filter(|_| held.hold.retains()) else { return };
        if hears {
            let sent = &mut held.sent;
            let is_sacked = parsed.places.sack_at.is_some();
            let mut taken_bytes = 0;
            let free_bytes = sent.acked(flow.snd_una, now_us as u32, &mut core.spare);
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
            held.hold.left(&mut core.buffer, free_bytes);
            flow.repair_charge(&mut held.hold, &mut core.buffer, taken_bytes);
        }
        if passes && flow.hold_covers(&held.hold) {
            strip_sack(frame, parsed);
        }
        let ack = held.hold.split_ack(parsed.segment.ack);
        // A guest may judge the acknowledgement before the sequence number, which it should answer if
        // that is the old one (RFC 9293, 3.10.7.4).
        let acks_flight = parsed.segment.ack.wrapping_sub(flow.snd_una) <= flow.flight_bytes();
        if passes && (hears || acks_flight) && ack != parsed.segment.ack {
            // Below an acknowledgement, a block would be a DSACK (RFC 2883).
            strip_sack(frame, parsed);
            set_ack(frame, parsed, ack);
        }
    }

    /// The next lost segment that the windows admit, by its place.
    pub(super) fn next_lost(core: &mut Core, id: FlowId) -> Option<usize> {
        let now_us = core.now_us();
        loop {
            let Entry { state: flow, held, .. } = core.table.get_mut(id)?;
            if !held.hold.retains() {
                return None;
            }
            let at = held.sent.first_lost()?;
            let free_bytes = held.sent.trim(at, flow.snd_una, now_us as u32);
            held.hold.left(&mut core.buffer, free_bytes);
            let kept = held.sent.get(at)?;
            if let Some(limit_bytes) = held.path.limit_bytes(&kept.waiting.parsed, now_us) {
                let taken_bytes = held.sent.cut(at, limit_bytes);
                flow.repair_charge(&mut held.hold, &mut core.buffer, taken_bytes);
                continue;
            }
            let unit_bytes = unit_bytes(kept.waiting.segment());
            let whole_bytes = kept.facts.end.wrapping_sub(kept.facts.seq);
            let leaves_bytes = flow.repair_leaves_bytes(
                &held.hold,
                &held.sent.recovery,
                core.treatments.params_of(flow),
                &kept.facts,
                unit_bytes,
            );
            if leaves_bytes == 0 {
                return None;
            }
            if leaves_bytes < whole_bytes {
                let taken_bytes = held.sent.cut(at, leaves_bytes);
                flow.repair_charge(&mut held.hold, &mut core.buffer, taken_bytes);
            }
            return Some(at);
        }
    }

    /// A segment to send again, with the guest's latest acknowledgement, window and timestamps.
    /// [`Repair::resent`] must follow, with the flow's state before.
    pub(super) fn again(core: &Core, id: FlowId, at: usize) -> Option<(Waiting, Before)> {
        let Entry { state: flow, held, .. } = core.table.get(id)?;
        let mut again = held.sent.get(at)?.waiting.clone();
        again.parsed.segment.now_us = core.now_us();
        held.latest.renew(&mut again.frame, &mut again.parsed);
        Some((again, Before::from_flow(flow)))
    }

    pub(super) fn resent(core: &mut Core, id: FlowId, at: usize, before: Before) {
        let now_us = core.now_us() as u32;
        let Some(Entry { state: flow, held, .. }) = core.table.get_mut(id) else { return };
        let Some((kept, recovery)) = held.sent.with_recovery(at) else { return };
        flow.repair_resent(&mut held.hold, recovery, &mut kept.facts, now_us, before.ca_state);
    }

    /// When the next timer of a flow goes off, at the earliest.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.timers.next_ns()
    }

    /// The next flow whose timer has gone off.
    pub(super) fn next_due(&mut self, core: &mut Core) -> Option<FlowId> {
        self.timers.next_due(&mut core.table, core.now_ns, |entry| &mut entry.held.sent.timer_ns)
    }

    /// Acts on the timer of a flow, if it has expired.
    pub(super) fn expire(core: &mut Core, id: FlowId) -> Expired {
        let now_us = core.now_us();
        let Some(Entry { state: flow, held, .. }) = core.table.get_mut(id) else {
            return Expired::Nothing;
        };
        if held.sent.reorder_due_us().is_some_and(|due_us| due_us <= now_us) {
            held.sent.detect(flow, now_us);
        }
        let waits = held.has_blocked_data();
        let due = flow.repair_due(
            &held.hold,
            &held.sent.recovery,
            core.treatments.params_of(flow),
            now_us as u32,
            waits,
        );
        let Some((0, timer)) = due else { return Expired::Nothing };
        match timer {
            RepairTimer::GiveUp => return Expired::GiveUp,
            RepairTimer::Timeout => {
                flow.repair_timeout(&mut held.sent.recovery, now_us as u32);
                let waits_until = held.queue.back().map(|last| sequence_end(last.segment()));
                let timeouts = held.sent.recovery.0.timeouts;
                held.path.note_timeout(timeouts, waits_until.unwrap_or(flow.snd_nxt));
                held.sent.lose_all();
            }
            RepairTimer::Probe => {
                flow.repair_probed(&mut held.sent.recovery);
                let Some((at, taken_bytes)) = held.sent.last(&held.path, now_us) else {
                    return Expired::Nothing;
                };
                flow.repair_charge(&mut held.hold, &mut core.buffer, taken_bytes);
                let free_bytes = held.sent.trim(at, flow.snd_una, now_us as u32);
                held.hold.left(&mut core.buffer, free_bytes);
                let facts = held.sent.get(at).map(|kept| kept.facts).unwrap_or_default();
                // Law 14: the peer may have shrunk its window since.
                if facts.sacked == 0 && !before(held.hold.0.peer_edge, facts.end) {
                    return Expired::Again(at);
                }
            }
            RepairTimer::Persist => {
                held.sent.recovery.persisted(now_us as u32);
                let seq = flow.snd_una.wrapping_sub(1);
                if let Some(Waiting { frame, parsed }) = held.any() {
                    let mut empty = without_payload(frame, parsed);
                    let mut parsed = reparsed(&empty);
                    held.latest.renew(&mut empty, &mut parsed);
                    return Expired::Empty(empty, seq);
                }
            }
        }
        Expired::Nothing
    }

    /// Sets the flow's timer, if it must go off earlier than it is set to.
    pub(super) fn arm(&mut self, core: &mut Core, id: FlowId) {
        let now_us = core.now_us();
        let Some(Entry { key, state: flow, held, .. }) = core.table.get_mut(id) else { return };
        if !held.hold.retains() {
            return;
        }
        let waits = held.has_blocked_data();
        let due = flow.repair_due(
            &held.hold,
            &held.sent.recovery,
            core.treatments.params_of(flow),
            now_us as u32,
            waits,
        );
        let dues = [due.map(|(in_us, _)| now_us + u64::from(in_us)), held.sent.reorder_due_us()];
        let Some(due_us) = dues.into_iter().flatten().min() else { return };
        let due_ns = (due_us * NS_PER_US).max(core.now_ns + 1);
        self.timers.set(&mut held.sent.timer_ns, due_ns, key);
    }
}
