//! What a port holds for the guest: a FIFO per flow, and the guest's latest acknowledgement.

mod cut;
mod latest;

use std::collections::VecDeque;

use vcc_engine::{Buffer, BufferPolicy, Hold};

use crate::frame::Frame;
pub(crate) use cut::{cut, without_payload};
pub(crate) use latest::{Latest, set_seq};

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

/// What a port keeps of a flow beside its state.
#[derive(Clone, Default)]
pub(crate) struct Held {
    pub hold: Hold,
    pub latest: Latest,
    pub queue: Queue,
}

impl Held {
    /// Discards what is held.
    pub(crate) fn clear(&mut self, buffer: &mut Buffer) {
        self.queue = Queue::default();
        let held_bytes = self.hold.0.held_bytes;
        self.hold.left(buffer, held_bytes);
    }
}

/// A flow's segments that wait for its window; an empty queue has no memory of its own.
#[derive(Clone, Default)]
pub(crate) struct Queue(VecDeque<Frame>);

impl Queue {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn front_mut(&mut self) -> Option<&mut Frame> {
        self.0.front_mut()
    }

    pub(crate) fn push(&mut self, frame: Frame) {
        self.0.push_back(frame);
    }

    pub(crate) fn pop(&mut self) -> Option<Frame> {
        let frame = self.0.pop_front();
        if self.0.is_empty() {
            self.0 = VecDeque::new();
        }
        frame
    }
}

/// The bytes of the buffer that a frame takes.
pub(crate) fn charge_bytes(frame: &Frame) -> u32 {
    frame.bytes.len() as u32
}
