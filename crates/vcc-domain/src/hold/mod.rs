//! Frames that a port holds for the guest: a FIFO per flow, and the guest's latest acknowledgement.

mod cut;
mod latest;
mod occupancy;
mod out_of_order;
mod path;
mod sent;

use std::collections::VecDeque;

use vcc_engine::{Buffer, BufferPolicy, FlowState, Hold, Params, Segment, TooBig, sys};

use crate::frame::{Direction, Frame};
use crate::parse::{Parsed, parse};
pub(crate) use cut::{cut, without_payload};
pub(crate) use latest::{Latest, set_ack, set_seq, strip_sack};
pub use occupancy::Occupancy;
pub(crate) use out_of_order::OutOfOrder;
pub(crate) use path::Path;
pub(crate) use sent::{Kept, Sent};

/// The size of a port's buffer, and how its flows share it (vFlood, 3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferSpec {
    pub size_bytes: u32,
    pub policy: BufferPolicy,
}

impl Default for BufferSpec {
    /// vFlood's buffer for each virtual machine (3.3).
    fn default() -> Self {
        BufferSpec { size_bytes: 4 << 20, policy: BufferPolicy::Fair }
    }
}

impl BufferSpec {
    pub(crate) fn empty(self) -> Buffer {
        Buffer::new(self.size_bytes, self.policy)
    }
}

/// What a port keeps of a flow besides its state.
#[derive(Clone, Default)]
pub(crate) struct Held {
    pub hold: Hold,
    pub latest: Latest,
    pub queue: Queue,
    pub out_of_order: OutOfOrder,
    pub sent: Sent,
    pub path: Path,
    /// The peer's last TSval.
    pub peer_tsval: Option<u32>,
    /// An acknowledgement of the port is due.
    pub is_ack_due: bool,
    /// Data waits for the rate of all the guest's connections.
    pub is_paced: bool,
    /// When the next segment of a paced window leaves.
    pub interval_ns: Option<u64>,
    /// An ACK to the guest waits until it reads its ring.
    pub late_ack: Option<Box<LateAck>>,
    /// In the ledger.
    pub slot: Option<usize>,
    /// Only while the port traces.
    pub occupancy: Occupancy,
}

/// An ACK to the guest that waits.
#[derive(Clone)]
pub(crate) struct LateAck {
    /// When the first one began to wait of which this is the latest.
    pub since_ns: u64,
    pub frame: Frame,
    /// What the guest will see.
    pub shown: Segment,
}

impl Held {
    /// Discards what is held.
    pub(crate) fn clear(&mut self, buffer: &mut Buffer) {
        self.queue = Queue::default();
        self.out_of_order = OutOfOrder::default();
        self.sent = Sent::default();
        self.path = Path::default();
        let held_bytes = self.hold.0.held_bytes;
        self.hold.left(buffer, held_bytes);
        self.hold.gives_back(buffer);
    }

    /// Discards what is retained of what has left; the guest has it, too.
    pub(crate) fn discard_sent(&mut self, buffer: &mut Buffer) {
        let free_bytes = self.sent.bytes();
        self.sent = Sent::default();
        self.hold.left(buffer, free_bytes);
    }

    /// A message about the flow's path; false if nothing changes. What it reports lost leaves again.
    pub(crate) fn shrink_path(
        &mut self,
        flow: &mut FlowState,
        params: &Params,
        message: &TooBig,
    ) -> bool {
        let Held { hold, sent, path, .. } = self;
        let shrinks = path.shrink(flow, hold, &mut sent.recovery, params, message);
        if shrinks {
            sent.lose_larger(path, message.now_us);
        }
        shrinks
    }

    /// Is there something to send that may not leave?
    pub(crate) fn has_blocked_data(&self) -> bool {
        !self.queue.is_empty() || self.sent.has_lost()
    }

    /// A segment of the guest that is held or retained.
    pub(crate) fn any(&self) -> Option<&Waiting> {
        let retained = self.sent.get(0).map(|kept| &kept.waiting);
        retained.or_else(|| self.queue.front())
    }
}

/// The bytes of the buffer that a frame takes.
pub(crate) fn charge_bytes(frame: &Frame) -> u32 {
    sys::HELD_FRAME_BYTES + frame.bytes.len() as u32
}

/// A frame that is held or retained, with what its headers say.
#[derive(Clone)]
pub(crate) struct Waiting {
    pub frame: Frame,
    pub parsed: Parsed,
}

impl Waiting {
    pub(crate) fn segment(&self) -> &Segment {
        &self.parsed.segment
    }

    /// Cuts off the first `payload_bytes` of its payload.
    pub(crate) fn cut(&mut self, payload_bytes: usize) -> Waiting {
        let frame = cut(&mut self.frame, &self.parsed, payload_bytes);
        self.parsed = reparsed(&self.frame);
        Waiting { parsed: reparsed(&frame), frame }
    }
}

/// The payload of a segment, or of each full segment of a super-segment.
pub(crate) fn unit_bytes(segment: &Segment) -> u32 {
    if segment.seg_bytes > 0 { segment.seg_bytes } else { segment.payload_bytes }
}

/// The sequence numbers that the segment occupies.
pub(crate) fn sequence_bytes(segment: &Segment) -> u32 {
    let fin = u32::from(segment.flags) & sys::TCP_FIN != 0;
    segment.payload_bytes + u32::from(fin)
}

/// One past the last sequence number that the segment occupies.
pub(crate) fn sequence_end(segment: &Segment) -> u32 {
    segment.seq.wrapping_add(sequence_bytes(segment))
}

/// Parses a frame that was parsed and may have been cut since.
pub(crate) fn reparsed(frame: &Frame) -> Parsed {
    parse(frame, Direction::FromGuest).expect("a part of a segment is a segment")
}

/// The same, to leave at this time.
pub(crate) fn reparsed_at(frame: &Frame, now_us: u64) -> Parsed {
    let mut parsed = reparsed(frame);
    parsed.segment.now_us = now_us;
    parsed
}

/// A flow's segments that wait for its window; an empty queue has no memory of its own.
#[derive(Clone, Default)]
pub(crate) struct Queue(VecDeque<Waiting>);

impl Queue {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// In order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Waiting> {
        self.0.iter()
    }

    pub(crate) fn back(&self) -> Option<&Waiting> {
        self.0.back()
    }

    pub(crate) fn front(&self) -> Option<&Waiting> {
        self.0.front()
    }

    pub(crate) fn front_mut(&mut self) -> Option<&mut Waiting> {
        self.0.front_mut()
    }

    pub(crate) fn push(&mut self, waiting: Waiting) {
        self.0.push_back(waiting);
    }

    pub(crate) fn pop(&mut self) -> Option<Waiting> {
        if self.0.len() == 1 {
            return std::mem::take(&mut self.0).pop_front();
        }
        self.0.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Talk, framed};

    #[test]
    fn an_empty_queue_has_no_memory() {
        let mut queue = Queue::default();
        assert_eq!(queue.0.capacity(), 0);
        let frame = framed(&Talk::v4().segment(true));
        for _ in 0..100 {
            let parsed = reparsed(&frame);
            queue.push(Waiting { frame: frame.clone(), parsed });
        }
        while queue.pop().is_some() {}
        assert!(queue.is_empty());
        assert_eq!(queue.0.capacity(), 0);
    }
}
