//! Flows that wait for room in the guest's receive ring.

use std::collections::BTreeSet;

use vcc_engine::sys;

use super::Port;
use super::thinning::ReceiveRing;
use crate::frame::Out;
use crate::table::{Entry, FlowId};
use vcc_engine::FlowKey;

impl Port {
    /// The room in the guest's receive ring. The shell reports it before each call with a frame,
    /// and when the guest has made room.
    pub fn set_room(&mut self, now_ns: u64, ring: ReceiveRing, out: &mut Out) {
        self.core.note_time(now_ns);
        self.thinning.note_ring(&mut self.core, ring, &mut out.to_guest);
        let free_segs = ring.free_segs.saturating_add(ring.behind_segs);
        if free_segs > self.snooping.sharing.free_segs {
            // The guest reads its ring.
            self.snooping.heard_ns = now_ns;
        }
        self.snooping.sharing.free_segs = free_segs;
        self.end_shares();
        self.tell_room(out);
    }

    /// Must the shell report room to the port?
    pub fn wants_room(&self) -> bool {
        self.snooping.is_on || self.thinning.is_on()
    }

    /// Does it hold what the guest sends, so that it takes each frame into its buffer?
    pub fn holds_frames(&self) -> bool {
        self.thinning.is_on()
    }

    /// Is there something to send, to either side, when the guest makes room?
    pub fn waits_for_room(&self) -> bool {
        let snooping = &self.snooping;
        !(snooping.waiting.is_empty() && snooping.narrow.is_empty() && self.thinning.is_empty())
    }

    /// Peers that have fallen silent leave their buffers to the others.
    #[inline]
    pub(super) fn end_shares(&mut self) {
        if self.snooping.sharing.next_ns().is_some_and(|at_ns| at_ns <= self.core.now_ns) {
            self.look_at_shares();
        }
    }

    #[cold]
    fn look_at_shares(&mut self) {
        let now_ns = self.core.now_ns;
        while let Some((at_ns, key)) = self.snooping.sharing.pop(now_ns) {
            let Some(id) = self.core.table.find(&key) else { continue };
            let Some(Entry { snooped, .. }) = self.core.table.get_mut(id) else { continue };
            let (sharing, share) = (&mut self.snooping.sharing, &mut snooped.share);
            if !sharing.is_silent((now_ns, at_ns), &key, share) {
                continue;
            }
            if snooped.answer_waits {
                // It continues when it has the acknowledgement, and so keeps its equal part.
                snooped.snoop.has_sent_all();
                sharing.note(now_ns, &key, share, 0);
                sharing.list(now_ns, &key, share);
            } else {
                sharing.end(share);
                snooped.snoop.falls_silent();
            }
            self.note_waiting(id);
        }
    }

    /// Sends what has waited for the room that there is.
    #[inline]
    pub(super) fn tell_room(&mut self, out: &mut Out) {
        if self.snooping.opens_first().is_some() || self.snooping.widens_first().is_some() {
            self.tell_all(out);
        }
    }

    #[cold]
    fn tell_all(&mut self, out: &mut Out) {
        while let Some(first) = self.snooping.opens_first() {
            let before = self.snooping.sharing.due_segs();
            self.tell_again(first, out);
            let waits_still = self.snooping.waiting.first() == Some(&first);
            if waits_still && self.snooping.sharing.due_segs() == before {
                debug_assert!(false, "there was room, and it waits still: {first:?}");
                break;
            }
        }
        while let Some(first) = self.snooping.widens_first() {
            self.tell_again(first, out);
            if self.snooping.narrow.first() == Some(&first) {
                debug_assert!(false, "there was room, and its window is small: {first:?}");
                break;
            }
        }
    }

    fn tell_again(&mut self, (segs, key): (u32, FlowKey), out: &mut Out) {
        let Some(id) = self.core.table.find(&key) else { return };
        // It may be listed for fewer buffers than it waits for, and the treatment may have changed.
        self.unlist(id);
        if self.note_waiting(id) == Some(segs) {
            self.unlist(id);
            self.answer(id, out);
        }
    }

    /// The flow waits for nothing.
    pub(super) fn unlist(&mut self, id: FlowId) {
        let Some(Entry { key, snooped, .. }) = self.core.table.get_mut(id) else { return };
        move_to(&mut self.snooping.waiting, key, &mut snooped.opens_at_segs, None);
        move_to(&mut self.snooping.narrow, key, &mut snooped.widens_at_segs, None);
    }

    /// After each change of the flow: what is set aside for its peer, and from how many buffers on
    /// it has something to say.
    pub(super) fn note_waiting(&mut self, id: FlowId) -> Option<u32> {
        let Entry { key, state: flow, snooped, .. } = self.core.table.get_mut(id)?;
        let treatment = self.core.treatments.of(flow);
        let (sharing, share) = (&mut self.snooping.sharing, &mut snooped.share);
        if !share.is_silent() && !flow.snoops(&snooped.snoop, treatment) {
            sharing.end(share);
            snooped.snoop.falls_silent();
        }
        let needs = flow.snoop_needs(&snooped.snoop, treatment, snooped.answer_waits);
        if needs.due_segs != share.due_segs {
            sharing.note(self.core.now_ns, key, share, needs.due_segs);
        }
        let some = |segs| if segs == sys::SNOOP_NEVER_SEGS { None } else { Some(segs) };
        let (opens_at, widens_at) = (some(needs.opens_at_segs), some(needs.widens_at_segs));
        lower_to(&mut self.snooping.waiting, key, &mut snooped.opens_at_segs, opens_at);
        lower_to(&mut self.snooping.narrow, key, &mut snooped.widens_at_segs, widens_at);
        opens_at.or(widens_at)
    }
}

/// The same for a flow whose place may be lower than it is: it comes first too early, and is moved
/// then, which costs less than to move it with each segment.
#[inline]
fn lower_to(
    order: &mut BTreeSet<(u32, FlowKey)>,
    key: &FlowKey,
    place: &mut Option<u32>,
    to: Option<u32>,
) {
    let is_early = place.is_some_and(|place| to.is_some_and(|to| place <= to));
    if !is_early && *place != to {
        move_to(order, key, place, to);
    }
}

/// Puts a flow into another place of an order.
pub(super) fn move_to(
    order: &mut BTreeSet<(u32, FlowKey)>,
    key: &FlowKey,
    place: &mut Option<u32>,
    to: Option<u32>,
) {
    if *place == to {
        return;
    }
    if let Some(before) = std::mem::replace(place, to) {
        order.remove(&(before, *key));
    }
    order.extend(to.map(|segs| (segs, *key)));
}
