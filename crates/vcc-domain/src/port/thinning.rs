//! ACKs that wait while the guest does not read its receive ring (`engine/ack_thinning.h`).

use std::collections::BTreeSet;

use vcc_engine::{Action, Params, Segment, Shown, Thin, is_ring_crowded, sys};

use super::core::Core;
use crate::frame::{Frame, Verdict};
use crate::hold::LateAck;
use crate::parse::Parsed;
use crate::table::{Entry, FlowId};
use vcc_engine::FlowKey;

/// Then the guest is given an ACK even if its driver has added no buffers: sooner than it would
/// retransmit (Linux: TCP_RTO_MIN is 200 ms).
const WAITS_MAX_NS: u64 = 100_000_000;

/// A guest's receive ring; of several, the fullest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveRing {
    /// Buffers that fit into it; another number means another ring.
    pub size_segs: u32,
    /// Buffers without a frame.
    pub free_segs: u32,
    /// Frames that are kept behind the ring while it is full, and not acknowledged: how many more.
    pub behind_segs: u32,
}

#[derive(Clone, Default)]
pub(super) struct Thinning {
    /// The treatment has had an `act` that holds.
    is_on: bool,
    ring: ReceiveRing,
    /// The most buffers that it had free at a time: some drivers use a part of it.
    added_segs: u32,
    /// The flows with an ACK that waits, by the time since when one does.
    waiting: BTreeSet<(u64, FlowKey)>,
}

impl Thinning {
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    pub(super) fn is_crowded(&self) -> bool {
        is_ring_crowded(self.ring.free_segs, self.added_segs)
    }

    fn set_ring(&mut self, ring: ReceiveRing) {
        let is_same = self.ring.size_segs == ring.size_segs;
        let added_segs = if is_same { self.added_segs } else { 0 };
        self.added_segs = added_segs.max(ring.free_segs);
        self.ring = ring;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// When an ACK has waited for long enough. A full ring has no room for it until the guest reads.
    pub(super) fn next_ns(&self) -> Option<u64> {
        let (since_ns, _) = self.waiting.first().filter(|_| self.ring.free_segs > 0)?;
        Some(since_ns.saturating_add(WAITS_MAX_NS))
    }

    /// The treatments may have changed.
    pub(super) fn note_treatments(&mut self, core: &Core) {
        let holds = |params: &Params| u32::from(params.0.act) != sys::ACT_WINDOW;
        self.is_on |= core.treatments.any(holds);
    }

    /// The acknowledgement that the guest was shown last.
    #[inline]
    pub(super) fn last_shown(&self, core: &Core, id: FlowId) -> Shown {
        if !self.is_on {
            return Shown::default();
        }
        let Some(Entry { state: flow, held, .. }) = core.table.get(id) else {
            return Shown::default();
        };
        let (ack, window) = (held.hold.split_ack(flow.snd_una), flow.window_shown.into());
        Shown { ack, window }
    }

    /// A frame that passes to the guest, which accepts it: it passes or waits.
    #[inline]
    pub(super) fn thin(
        &mut self,
        core: &mut Core,
        id: FlowId,
        (frame, parsed): (&mut Frame, &Parsed),
        action: &Action,
        last: Shown,
        to_guest: &mut Vec<Frame>,
    ) -> Verdict {
        if !self.is_on {
            return Verdict::Pass;
        }
        let (now_ns, is_crowded) = (core.now_ns, self.is_crowded());
        let Some(Entry { key, state: flow, held, .. }) = core.table.get_mut(id) else {
            return Verdict::Pass;
        };
        if held.late_ack.is_none() && !is_crowded {
            return Verdict::Pass;
        }
        let Action { flags, window, .. } = *action;
        let shown = Segment { flags, window, ..parsed.segment };
        let waiting = held.late_ack.as_ref().map(|late| &late.shown);
        let params = core.treatments.params_of(flow);
        let thin = flow.thin_ack(&held.hold, params, waiting, &last, &shown, is_crowded);
        let mut taken = || frame.take_to_keep();
        match thin {
            Thin::Pass => Verdict::Pass,
            Thin::Instead => {
                self.drop_ack(core, id);
                Verdict::Pass
            }
            Thin::Behind => {
                self.hand_over(core, id, to_guest);
                to_guest.push(taken());
                Verdict::Held
            }
            Thin::Wait => {
                let since_ns = held.late_ack.as_ref().map_or(now_ns, |late| late.since_ns);
                let late = LateAck { since_ns, frame: taken(), shown };
                held.late_ack = Some(Box::new(late));
                self.waiting.insert((since_ns, *key));
                Verdict::Held
            }
        }
    }

    /// The guest has read its ring, or frames have been put there.
    pub(super) fn note_ring(
        &mut self,
        core: &mut Core,
        ring: ReceiveRing,
        to_guest: &mut Vec<Frame>,
    ) {
        let reads = ring.free_segs > self.ring.free_segs;
        self.set_ring(ring);
        if self.is_empty() {
            return;
        }
        if reads || !self.is_crowded() {
            self.hand_over_since(core, core.now_ns, to_guest);
        }
    }

    /// Gives the guest the ACKs that have waited for long enough.
    pub(super) fn advance(&mut self, core: &mut Core, to_guest: &mut Vec<Frame>) {
        if let Some(since_ns) = core.now_ns.checked_sub(WAITS_MAX_NS) {
            self.hand_over_since(core, since_ns, to_guest);
        }
    }

    /// Gives the guest the ACKs that have waited since then, as far as its ring has room.
    fn hand_over_since(&mut self, core: &mut Core, since_ns: u64, to_guest: &mut Vec<Frame>) {
        while self.ring.free_segs > 0 && self.hand_over_first(core, since_ns, to_guest) {
            self.ring.free_segs -= 1;
        }
    }

    /// Gives the guest all ACKs that wait, because the port is about to end.
    pub(super) fn end(&mut self, core: &mut Core, to_guest: &mut Vec<Frame>) {
        while self.hand_over_first(core, core.now_ns, to_guest) {}
    }

    /// Gives the guest the ACK that has waited for the longest time; false if none has since then.
    fn hand_over_first(
        &mut self,
        core: &mut Core,
        since_ns: u64,
        to_guest: &mut Vec<Frame>,
    ) -> bool {
        let first = self.waiting.first().filter(|(at_ns, _)| *at_ns <= since_ns);
        let Some(id) = first.and_then(|(_, key)| core.table.find(key)) else { return false };
        self.hand_over(core, id, to_guest);
        true
    }

    /// Gives the guest the ACK of a flow that waits, if one does.
    #[inline]
    pub(super) fn hand_over(&mut self, core: &mut Core, id: FlowId, to_guest: &mut Vec<Frame>) {
        to_guest.extend(self.take_ack(core, id));
    }

    /// Drops the ACK of a flow that waits: its connection has ended, or a later one passes.
    pub(super) fn drop_ack(&mut self, core: &mut Core, id: FlowId) {
        drop(self.take_ack(core, id));
    }

    fn take_ack(&mut self, core: &mut Core, id: FlowId) -> Option<Frame> {
        if self.is_empty() {
            return None;
        }
        let Entry { key, held, .. } = core.table.get_mut(id)?;
        let late = held.late_ack.take()?;
        let was_listed = self.waiting.remove(&(late.since_ns, *key));
        debug_assert!(was_listed, "an ACK that waits is listed");
        Some(late.frame)
    }
}
