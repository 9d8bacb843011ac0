//! The segments that have left and are retained until they are acknowledged: a scoreboard
//! (RFC 8985, 5.1; RFC 6675, 3). What their fate is, the engine decides.

use std::collections::VecDeque;

use vcc_engine::{FlowState, Recovery, Retained};

use super::{Path, Waiting, charge_bytes, unit_bytes};
use crate::spare::Spare;
use vcc_net::seq::before;

#[derive(Clone)]
pub(crate) struct Kept {
    /// As the guest sent it.
    pub waiting: Waiting,
    pub facts: Retained,
}

impl Kept {
    /// The payload of its segments, if it is a super-segment.
    fn unit_bytes(&self) -> Option<u32> {
        Some(self.waiting.segment().seg_bytes).filter(|&bytes| bytes > 0)
    }

    /// Cuts off the first `payload_bytes` of its payload.
    fn cut(&mut self, payload_bytes: u32) -> Kept {
        let waiting = self.waiting.cut(payload_bytes as usize);
        let end = self.facts.seq.wrapping_add(payload_bytes);
        let first = Kept { waiting, facts: Retained { end, fin: 0, ..self.facts } };
        self.facts.seq = end;
        first
    }
}

/// In order of their sequence numbers; an empty one has no memory of its own.
#[derive(Clone, Default)]
pub(crate) struct Sent {
    pub recovery: Recovery,
    queue: VecDeque<Kept>,
    /// When the flow's timer is set to go off, at the latest.
    pub timer_ns: Option<u64>,
    /// When RACK's reordering timer expires (RFC 8985, 6.2, step 5).
    reorder_due_us: Option<u64>,
}

impl Sent {
    pub(crate) fn push(&mut self, kept: Kept) {
        debug_assert!(self.queue.back().is_none_or(|last| !before(kept.facts.seq, last.facts.end)));
        self.queue.push_back(kept);
    }

    /// In order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Kept> {
        self.queue.iter()
    }

    /// A SACK block covers all of the last one.
    pub(crate) fn last_is_sacked(&mut self, now_us: u32) {
        if let Some(kept) = self.queue.back_mut() {
            self.recovery.sacked(&mut kept.facts, now_us);
        }
    }

    pub(crate) fn get(&self, at: usize) -> Option<&Kept> {
        self.queue.get(at)
    }

    /// A segment with the flow's recovery.
    pub(crate) fn with_recovery(&mut self, at: usize) -> Option<(&mut Kept, &mut Recovery)> {
        self.queue.get_mut(at).map(|kept| (kept, &mut self.recovery))
    }

    /// The sequence numbers at which the peer may lack something.
    pub(crate) fn starts(&self) -> impl Iterator<Item = u32> {
        self.queue.iter().filter(|kept| kept.facts.sacked == 0).flat_map(|kept| {
            let step_bytes = kept.unit_bytes().unwrap_or(u32::MAX);
            let bytes = kept.facts.end.wrapping_sub(kept.facts.seq);
            (0..bytes).step_by(step_bytes as usize).map(|at| kept.facts.seq.wrapping_add(at))
        })
    }

    pub(crate) fn has_lost(&self) -> bool {
        self.recovery.0.lost_bytes > 0
    }

    /// The bytes of the buffer that they take.
    pub(crate) fn bytes(&self) -> u32 {
        self.queue.iter().map(|kept| charge_bytes(&kept.waiting.frame)).sum()
    }

    /// The first segment that must be sent again.
    pub(crate) fn first_lost(&self) -> Option<usize> {
        if !self.has_lost() {
            return None;
        }
        self.queue.iter().position(|kept| kept.facts.lost != 0)
    }

    /// The last segment, for a probe: of a super-segment, or of one that the path does not carry, its
    /// last one. Returns its place, and the bytes of the buffer that a cut takes.
    pub(crate) fn last(&mut self, path: &Path, now_us: u64) -> Option<(usize, u32)> {
        let at = self.queue.len().checked_sub(1)?;
        let kept = &self.queue[at];
        let Waiting { parsed, .. } = &kept.waiting;
        let payload_bytes = parsed.segment.payload_bytes;
        let cut_bytes = path
            .limit_bytes(parsed, now_us)
            .or(kept.unit_bytes())
            .map_or(0, |unit_bytes| payload_bytes.saturating_sub(1) / unit_bytes * unit_bytes);
        match cut_bytes {
            0 => Some((at, 0)),
            _ => Some((at + 1, self.cut(at, cut_bytes))),
        }
    }

    /// Cuts a segment in two; returns the bytes of the buffer that this takes.
    pub(crate) fn cut(&mut self, at: usize, payload_bytes: u32) -> u32 {
        let kept = &mut self.queue[at];
        let before_bytes = charge_bytes(&kept.waiting.frame);
        let first = kept.cut(payload_bytes);
        let after_bytes = charge_bytes(&first.waiting.frame) + charge_bytes(&kept.waiting.frame);
        self.queue.insert(at, first);
        after_bytes - before_bytes
    }

    /// Lets go what is acknowledged; returns the bytes of the buffer that are free again.
    pub(crate) fn acked(&mut self, una: u32, now_us: u32, spare: &mut Spare) -> u32 {
        let mut free_bytes = 0;
        while self.queue.front().is_some_and(|kept| !before(una, kept.facts.end)) {
            let Some(kept) = self.queue.pop_front() else { break };
            self.recovery.acked(&kept.facts, now_us);
            free_bytes += charge_bytes(&kept.waiting.frame);
            spare.take(kept.waiting.frame);
        }
        if self.queue.is_empty() {
            self.queue = VecDeque::new();
            self.reorder_due_us = None;
        }
        free_bytes
    }

    /// Drops the acknowledged segments at the start of a super-segment, and acknowledged data in front of
    /// a FIN: a peer that has the data may take it with the FIN for a duplicate. Returns the bytes of the
    /// buffer that are free again.
    pub(crate) fn trim(&mut self, at: usize, una: u32, now_us: u32) -> u32 {
        let kept = &mut self.queue[at];
        if !before(kept.facts.seq, una) {
            return 0;
        }
        let payload_bytes = kept.waiting.segment().payload_bytes;
        let acked_bytes = una.wrapping_sub(kept.facts.seq).min(payload_bytes);
        let acked_bytes = match kept.unit_bytes() {
            _ if acked_bytes == payload_bytes => payload_bytes,
            Some(unit_bytes) => acked_bytes / unit_bytes * unit_bytes,
            None => 0,
        };
        if acked_bytes == 0 {
            return 0;
        }
        let before_bytes = charge_bytes(&kept.waiting.frame);
        let first = kept.cut(acked_bytes);
        self.recovery.acked(&first.facts, now_us);
        before_bytes - charge_bytes(&kept.waiting.frame)
    }

    /// A SACK block. Only whole segments count; returns the bytes of the buffer that cutting
    /// super-segments takes.
    pub(crate) fn sacked(&mut self, (left, right): (u32, u32), now_us: u32) -> u32 {
        let mut taken_bytes = 0;
        let mut at = self.queue.partition_point(|kept| !before(left, kept.facts.end));
        while let Some(kept) = self.queue.get(at).filter(|kept| before(kept.facts.seq, right)) {
            let Retained { seq, end, sacked, .. } = kept.facts;
            let covers_start = !before(seq, left);
            if sacked == 0 && (!covers_start || before(right, end)) {
                let Some(unit_bytes) = kept.unit_bytes() else {
                    at += 1;
                    continue;
                };
                let payload_bytes = kept.waiting.segment().payload_bytes;
                let skip_bytes = match covers_start {
                    true => right.wrapping_sub(seq) / unit_bytes * unit_bytes,
                    false => left.wrapping_sub(seq).div_ceil(unit_bytes) * unit_bytes,
                };
                if skip_bytes == 0 || skip_bytes >= payload_bytes {
                    at += 1;
                    continue;
                }
                taken_bytes += self.cut(at, skip_bytes);
                if !covers_start {
                    at += 1;
                }
                continue;
            }
            self.recovery.sacked(&mut self.queue[at].facts, now_us);
            at += 1;
        }
        taken_bytes
    }

    /// Finds what is lost now (RFC 8985, 6.2, step 5).
    pub(crate) fn detect(&mut self, flow: &FlowState, now_us: u64) {
        self.reorder_due_us = None;
        let mut is_any_lost = false;
        for kept in &mut self.queue {
            match flow.repair_lost_in_us(&self.recovery, &kept.facts, now_us as u32) {
                Some(0) => self.recovery.lost(&mut kept.facts),
                Some(in_us) => {
                    let due_us = now_us + u64::from(in_us);
                    self.reorder_due_us =
                        Some(self.reorder_due_us.map_or(due_us, |before| before.min(due_us)));
                }
                None => {}
            }
            is_any_lost |= kept.facts.lost != 0;
        }
        debug_assert!(self.has_lost() || !is_any_lost, "what is lost is in the account");
    }

    pub(crate) fn reorder_due_us(&self) -> Option<u64> {
        self.reorder_due_us
    }

    /// The path has become smaller: what is too large is lost.
    pub(crate) fn lose_larger(&mut self, path: &Path, now_us: u64) {
        for kept in &mut self.queue {
            if let Some(limit_bytes) = path.limit_bytes(&kept.waiting.parsed, now_us) {
                let payload_bytes = unit_bytes(kept.waiting.segment());
                self.recovery.lost_if_larger(&mut kept.facts, payload_bytes, limit_bytes);
            }
        }
    }

    /// The retransmission timer expired: all counts as lost.
    pub(crate) fn lose_all(&mut self) {
        self.reorder_due_us = None;
        for kept in &mut self.queue {
            self.recovery.forget_sack(&mut kept.facts);
        }
    }
}

#[cfg(test)]
mod tests {
    use vcc_engine::{PathMtu, sys};
    use vcc_frames::{Packet, payload};

    use super::super::reparsed;
    use super::*;
    use crate::frame::Frame;
    use crate::testing::{Talk, framed};

    #[test]
    fn a_probe_is_no_larger_than_the_path_carries() {
        let segment = Packet { payload: payload(1000), ..Talk::v4().segment(true) };
        for (mtu_bytes, gso_size, last_bytes) in
            [(0, 0, 1000), (700, 0, 340), (0, 300, 100), (700, 300, 100), (240, 300, 200)]
        {
            let frame = Frame { gso_size, ..framed(&segment) };
            let facts = Retained { seq: 5, end: 1005, ..Default::default() };
            let mut sent = Sent::default();
            sent.push(Kept { waiting: Waiting { parsed: reparsed(&frame), frame }, facts });
            let path = Path::of_mtu(PathMtu(sys::vcc_pmtu { mtu_bytes, learned_ms: 0 }));
            let (at, _) = sent.last(&path, 0).expect("a segment");
            let last = sent.get(at).expect("a segment");
            assert_eq!(last.waiting.segment().payload_bytes, last_bytes, "{mtu_bytes} {gso_size}");
            assert_eq!(last.facts.end, 1005);
        }
    }
}
