//! Recording flows ACK by ACK, for another process.

use vcc_engine::FlowKey;

use super::Port;
use crate::recording::{Recorded, Recording};

impl Port {
    /// Begins to record a flow, or all. Returns false if there is a recording already.
    pub fn begin_recording(&mut self, flow: Option<FlowKey>) -> bool {
        let is_free = self.recording.is_none();
        self.recording.get_or_insert(Recording { flow, recorded: Recorded::default() });
        is_free
    }

    /// Takes what was recorded since the last time. The memory of `taken` is used again.
    pub fn take_recorded(&mut self, taken: &mut Recorded) {
        taken.acks.clear();
        if let Some(Recording { recorded, .. }) = &mut self.recording {
            taken.lost = recorded.lost;
            std::mem::swap(&mut taken.acks, &mut recorded.acks);
        }
    }

    pub fn end_recording(&mut self) {
        self.recording = None;
    }
}
