//! Flows that wait for room in the guest's receive ring.

use std::collections::BTreeSet;

use vcc_engine::sys;

use super::Snooping;
use crate::port::core::Core;
use crate::port::thinning::ReceiveRing;
use crate::table::{Entry, FlowId};
use vcc_engine::FlowKey;

/// A flow that waited for the room that there is, and what was set aside for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::port) struct Turn {
    first: (u32, FlowKey),
    due_segs: u32,
}

impl Snooping {
    /// The room in the guest's receive ring.
    pub(in crate::port) fn set_room(&mut self, core: &mut Core, ring: ReceiveRing) {
        let free_segs = ring.free_segs.saturating_add(ring.behind_segs);
        if free_segs > self.sharing.free_segs {
            // The guest reads its ring.
            self.heard_ns = core.now_ns;
        }
        (self.sharing.free_segs, self.sharing.ring_segs) = (free_segs, ring.free_segs);
        self.end_shares(core);
    }

    /// Is there something to send when the guest makes room?
    pub(in crate::port) fn waits_for_room(&self) -> bool {
        !(self.waiting.is_empty() && self.narrow.is_empty() && self.starved.is_empty())
    }

    /// Peers that have fallen silent leave their buffers to the others.
    #[inline]
    pub(in crate::port) fn end_shares(&mut self, core: &mut Core) {
        if self.sharing.next_ns().is_some_and(|at_ns| at_ns <= core.now_ns) {
            self.look_at_shares(core);
        }
    }

    #[cold]
    fn look_at_shares(&mut self, core: &mut Core) {
        let now_ns = core.now_ns;
        while let Some((at_ns, key)) = self.sharing.pop(now_ns) {
            let Some(id) = core.table.find(&key) else { continue };
            let Some(Entry { snooped, .. }) = core.table.get_mut(id) else { continue };
            let (sharing, share) = (&mut self.sharing, &mut snooped.share);
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
            self.note_waiting(core, id);
        }
    }

    /// The first flow that waits, if there is room for its acknowledgement or a larger window.
    #[inline]
    fn first_turn(&self) -> Option<Turn> {
        let opens = self.waiting.first().filter(|first| self.sharing.is_open_for(first.0));
        let widens = || self.narrow.first().filter(|first| self.sharing.is_wide_for(first.0));
        let first = *opens.or_else(widens)?;
        Some(Turn { first, due_segs: self.sharing.due_segs() })
    }

    /// The next flow that has waited for the room that there is: its acknowledgement is due. `turn` is
    /// that of the call before.
    #[inline]
    pub(in crate::port) fn next_with_room(
        &mut self,
        core: &mut Core,
        turn: &mut Option<Turn>,
    ) -> Option<FlowId> {
        let first = self.first_turn()?;
        self.next_of_turns(core, first, turn)
    }

    #[cold]
    fn next_of_turns(
        &mut self,
        core: &mut Core,
        mut next: Turn,
        turn: &mut Option<Turn>,
    ) -> Option<FlowId> {
        loop {
            if turn.replace(next) == Some(next) {
                debug_assert!(false, "there was room, and it waits still: {next:?}");
                return None;
            }
            let (segs, key) = next.first;
            let id = core.table.find(&key)?;
            // It may be listed for fewer buffers than it waits for, and the treatment may have changed.
            self.unlist(core, id);
            if self.note_waiting(core, id) == Some(segs) {
                self.unlist(core, id);
                return Some(id);
            }
            next = self.first_turn()?;
        }
    }

    /// The flow waits for nothing.
    fn unlist(&mut self, core: &mut Core, id: FlowId) {
        let Some(Entry { key, snooped, .. }) = core.table.get_mut(id) else { return };
        move_to(&mut self.waiting, key, &mut snooped.opens_at_segs, None);
        move_to(&mut self.narrow, key, &mut snooped.widens_at_segs, None);
    }

    /// After each change of the flow: what is set aside for its peer, and from how many buffers on
    /// it has something to say.
    pub(in crate::port) fn note_waiting(&mut self, core: &mut Core, id: FlowId) -> Option<u32> {
        let Entry { key, state: flow, snooped, .. } = core.table.get_mut(id)?;
        let treated = self.treated(core.treatments.params_of(flow));
        let treatment = treated.params();
        let (sharing, share) = (&mut self.sharing, &mut snooped.share);
        let waits = snooped.answer_waits;
        let (mut needs, may_promise) = flow.snoop_needs(&snooped.snoop, treatment, waits);
        if !may_promise && !share.is_silent() {
            sharing.end(share);
            snooped.snoop.falls_silent();
            (needs, _) = flow.snoop_needs(&snooped.snoop, treatment, waits);
        }
        if needs.due_segs != share.due_segs {
            sharing.note(core.now_ns, key, share, needs.due_segs);
        }
        let some = |segs| if segs == sys::SNOOP_NEVER_SEGS { None } else { Some(segs) };
        let (opens_at, widens_at) = (some(needs.opens_at_segs), some(needs.widens_at_segs));
        lower_to(&mut self.waiting, key, &mut snooped.opens_at_segs, opens_at);
        lower_to(&mut self.narrow, key, &mut snooped.widens_at_segs, widens_at);
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
pub(super) fn move_to<Place: Copy + Ord>(
    order: &mut BTreeSet<(Place, FlowKey)>,
    key: &FlowKey,
    place: &mut Option<Place>,
    to: Option<Place>,
) {
    if *place == to {
        return;
    }
    if let Some(before) = std::mem::replace(place, to) {
        order.remove(&(before, *key));
    }
    order.extend(to.map(|place| (place, *key)));
}
