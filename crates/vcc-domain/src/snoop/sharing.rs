//! How the connections of a port share the guest's receive ring: what is set aside for each, and
//! which of them count (`engine/receive_ring.h`).

use std::collections::VecDeque;

use vcc_engine::{Room, Segment, sys};

use vcc_engine::FlowKey;

/// A peer from which nothing has come for so long has no buffers set aside: longer than the round
/// trip of a loaded fabric. It is noticed within twice that time.
const SILENT_NS: u64 = 20_000_000;

/// The guest's receive ring.
#[derive(Clone, Default)]
pub(crate) struct Sharing {
    /// Buffers without a frame, and frames that may be kept behind the ring.
    pub free_segs: u32,
    /// Buffers of the ring alone, without what has left for it since it was reported.
    pub ring_segs: u32,
    /// Buffers set aside, of all flows.
    due_segs: u32,
    /// Flows with a share.
    flows: u32,
    /// When each of them must be looked at again. Entries of flows that have left stay until then.
    listed: VecDeque<(u64, FlowKey)>,
}

/// One flow's part of it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Share {
    /// Buffers set aside for what its peer may have sent.
    pub due_segs: u32,
    heard_ns: u64,
    listed_ns: Option<u64>,
}

impl Share {
    pub(crate) fn is_silent(&self) -> bool {
        self.listed_ns.is_none()
    }
}

impl Sharing {
    /// The room for a flow with this share.
    pub(crate) fn room(&self, share: &Share) -> Room {
        Room {
            free_segs: self.free_segs,
            others_segs: self.due_segs - share.due_segs,
            flows: self.flows + u32::from(share.is_silent()),
            buffer_bytes: 0,
        }
    }

    /// The same for a flow whose data the port stores, with its part of `free_bytes` of the buffer.
    pub(crate) fn buffer_room(&self, share: &Share, free_bytes: u32) -> Room {
        let room = self.room(share);
        // Mostly it is alone, and a division takes as long as all else here.
        let buffer_bytes = if room.flows > 1 { free_bytes / room.flows } else { free_bytes };
        Room { free_segs: self.ring_segs, buffer_bytes, ..room }
    }

    /// A segment leaves for the ring.
    pub(crate) fn take_segs(&mut self, segment: &Segment) {
        let seg_bytes = if segment.seg_bytes > 0 { segment.seg_bytes } else { u32::MAX };
        let segs = segment.payload_bytes.div_ceil(seg_bytes).max(1);
        self.ring_segs = self.ring_segs.saturating_sub(segs);
    }

    /// Buffers of the ring for what is stored of a flow; one at least, if nothing `is_under_way` to the
    /// guest.
    pub(crate) fn open_segs(&self, share: &Share, is_under_way: bool) -> u32 {
        let taken_segs = sys::SNOOP_RESERVED_SEGS + self.due_segs - share.due_segs;
        let least_segs = if is_under_way { 0 } else { self.ring_segs.min(1) };
        self.ring_segs.saturating_sub(taken_segs).max(least_segs)
    }

    /// Buffers set aside.
    pub(crate) fn due_segs(&self) -> u32 {
        self.due_segs
    }

    /// Is there room for so many segments more?
    pub(crate) fn is_open_for(&self, segs: u32) -> bool {
        let taken_segs = u64::from(self.due_segs) + u64::from(sys::SNOOP_RESERVED_SEGS);
        taken_segs + u64::from(segs) <= self.free_segs.into()
    }

    /// Has a flow more that is silent a share of so many segments?
    pub(crate) fn is_wide_for(&self, segs: u32) -> bool {
        let usable_segs = self.free_segs.saturating_sub(sys::SNOOP_RESERVED_SEGS);
        let of_all_segs = u64::from(segs) * (u64::from(self.flows) + 1);
        of_all_segs <= usable_segs.into() && self.is_open_for(segs)
    }

    /// The peer has been offered a window in which it may send.
    pub(crate) fn note(&mut self, now_ns: u64, key: &FlowKey, share: &mut Share, due_segs: u32) {
        self.due_segs = self.due_segs - share.due_segs + due_segs;
        share.due_segs = due_segs;
        self.heard(now_ns, key, share);
    }

    /// The peer has sent something.
    pub(crate) fn heard(&mut self, now_ns: u64, key: &FlowKey, share: &mut Share) {
        share.heard_ns = now_ns;
        if share.is_silent() {
            self.flows += 1;
            self.list(now_ns, key, share);
        }
    }

    /// The flow has no share any more.
    pub(crate) fn end(&mut self, share: &mut Share) {
        self.due_segs -= share.due_segs;
        self.flows -= u32::from(!share.is_silent());
        *share = Share::default();
    }

    /// When the next flow must be looked at.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.listed.front().map(|(at_ns, _)| *at_ns)
    }

    /// A flow that was to be looked at by now.
    pub(crate) fn pop(&mut self, now_ns: u64) -> Option<(u64, FlowKey)> {
        self.next_ns().filter(|at_ns| *at_ns <= now_ns).and_then(|_| self.listed.pop_front())
    }

    /// Has the peer been silent, of the flow that was listed for `at_ns`? If not, it is listed again.
    pub(crate) fn is_silent(
        &mut self,
        (now_ns, at_ns): (u64, u64),
        key: &FlowKey,
        share: &mut Share,
    ) -> bool {
        if share.listed_ns != Some(at_ns) {
            return false;
        }
        if share.heard_ns + SILENT_NS > now_ns {
            self.list(share.heard_ns, key, share);
            return false;
        }
        true
    }

    /// The flow must be looked at when its peer has been silent since then.
    pub(crate) fn list(&mut self, since_ns: u64, key: &FlowKey, share: &mut Share) {
        let at_ns = since_ns + SILENT_NS;
        share.listed_ns = Some(at_ns);
        self.listed.push_back((at_ns, *key));
    }
}
