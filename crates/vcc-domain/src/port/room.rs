//! What waits for room in the guest's receive ring.

use super::Port;
use super::snooping::Snooping;
use crate::frame::Out;
use crate::key::FlowKey;

impl Port {
    /// The buffers in the guest's receive ring that have no frame. To be told before each call with
    /// a frame, and when the guest has made room.
    pub fn set_room(&mut self, now_ns: u64, free_segs: u32, out: &mut Out) {
        self.note_time(now_ns);
        if free_segs > self.snooping.sharing.free_segs {
            // The guest reads its ring.
            self.snooping.heard_ns = now_ns;
        }
        self.snooping.sharing.free_segs = free_segs;
        self.end_shares();
        self.tell_room(out);
    }

    /// Is there an acknowledgement or a window that leaves when the guest makes room?
    pub fn waits_for_room(&self) -> bool {
        !self.snooping.waiting.is_empty()
    }

    /// Peers that have fallen silent leave their buffers to the others.
    pub(super) fn end_shares(&mut self) {
        let now_ns = self.now_ns;
        while let Some((at_ns, key)) = self.snooping.sharing.pop(now_ns) {
            let Some((_, snooped)) = self.table.snooping(&key) else { continue };
            let (sharing, share) = (&mut self.snooping.sharing, &mut snooped.share);
            if sharing.is_over((now_ns, at_ns), &key, share, snooped.answer_waits) {
                sharing.end(share);
                snooped.snoop.falls_silent();
                self.note_waiting(&key);
            }
        }
    }

    /// Sends what has waited for the room that there is.
    pub(super) fn tell_room(&mut self, out: &mut Out) {
        while let Some(&(segs, key)) = self.snooping.waiting.first() {
            if !self.snooping.sharing.is_open_for(segs) {
                break;
            }
            let before = self.snooping.sharing.due_segs();
            // The treatment may have changed since.
            if self.note_waiting(&key) == Some(segs) {
                self.answer(&key, out);
            }
            let waits_still = self.snooping.waiting.first() == Some(&(segs, key));
            if waits_still && self.snooping.sharing.due_segs() == before {
                debug_assert!(false, "there was room, and it waits still: {key:?}");
                break;
            }
        }
    }

    /// After each change of the flow: what is set aside for its peer, and from how many buffers on
    /// it has something to say.
    pub(super) fn note_waiting(&mut self, key: &FlowKey) -> Option<u32> {
        let Snooping { sharing, waiting, .. } = &mut self.snooping;
        let (flow, snooped) = self.table.snooping(key)?;
        let (snoop, waits) = (&snooped.snoop, snooped.answer_waits);
        let due_segs = snoop.due_segs();
        if due_segs != snooped.share.due_segs {
            sharing.note(self.now_ns, key, &mut snooped.share, due_segs);
        }
        let segs = flow.snoop_opens_at_segs(snoop, self.treatments.of(flow), waits);
        if segs != snooped.opens_at_segs {
            let before = std::mem::replace(&mut snooped.opens_at_segs, segs);
            before.map(|before| waiting.remove(&(before, *key)));
            waiting.extend(segs.map(|segs| (segs, *key)));
        }
        segs
    }
}
