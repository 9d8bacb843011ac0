//! What waits for room in the guest's receive ring.

use vcc_engine::Room;

use super::Port;
use super::snooping::Snooping;
use crate::frame::Out;
use crate::key::FlowKey;

impl Port {
    /// The room for what arrives for the guest. To be told before each call with a frame, and when
    /// the guest has made room.
    pub fn set_room(&mut self, now_ns: u64, room: Room, out: &mut Out) {
        self.note_time(now_ns);
        if room.ring_segs > self.snooping.room.ring_segs {
            // The guest reads its ring.
            self.snooping.heard_ns = now_ns;
        }
        let before = std::mem::replace(&mut self.snooping.room, room);
        let waiting = self.snooping.waiting.iter();
        let found: Vec<FlowKey> = match room.backlog_bytes == before.backlog_bytes {
            true => waiting.take_while(|(segs, _)| *segs <= room.ring_segs).map(key_of).collect(),
            false => waiting.map(key_of).collect(),
        };
        for key in found {
            // The treatment may have changed since.
            if self.note_waiting(&key).is_some_and(|segs| segs <= room.ring_segs) {
                self.answer(&key, out);
            }
        }
    }

    /// Is there an acknowledgement or a window that leaves when the guest makes room?
    pub fn waits_for_room(&self) -> bool {
        !self.snooping.waiting.is_empty()
    }

    /// Finds out from how many free buffers in the ring on the flow has something to say; after each
    /// change of the flow.
    pub(super) fn note_waiting(&mut self, key: &FlowKey) -> Option<u32> {
        let Snooping { room, waiting, .. } = &mut self.snooping;
        let (flow, snooped) = self.table.snooping(key)?;
        let (snoop, waits) = (&snooped.snoop, snooped.answer_waits);
        let segs =
            flow.snoop_opens_at_segs(snoop, self.treatments.of(flow), room.backlog_bytes, waits);
        if segs != snooped.opens_at_segs {
            let before = std::mem::replace(&mut snooped.opens_at_segs, segs);
            before.map(|before| waiting.remove(&(before, *key)));
            waiting.extend(segs.map(|segs| (segs, *key)));
        }
        segs
    }
}

fn key_of((_, key): &(u32, FlowKey)) -> FlowKey {
    *key
}
