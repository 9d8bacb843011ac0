//! Recording flows ACK by ACK: for another process, or in memory for an experiment.

use vcc_engine::{Action, FlowKey, Segment, sys};

use super::Port;
use super::core::Core;
use crate::recording::{Recorded, Recording};
use crate::table::{Entry, FlowId};
use crate::trace::{Inferred, TracedAck};

#[derive(Clone, Default)]
pub(super) struct Recorder {
    /// None unless tracing is on.
    traced: Option<Vec<TracedAck>>,
    /// None unless another process records.
    recording: Option<Recording>,
}

impl Recorder {
    /// Of a flow before a segment to the guest; None unless tracing is on, or if it is no ACK.
    #[inline]
    pub(super) fn before(&self, core: &Core, id: FlowId, segment: &Segment) -> Option<Inferred> {
        if self.traced.is_none() || !is_ack(segment) {
            return None;
        }
        core.table.get(id).map(|entry| Inferred::from_flow(&entry.state))
    }

    /// The engine has judged the segment.
    #[inline]
    pub(super) fn note(
        &mut self,
        core: &mut Core,
        id: FlowId,
        segment: &Segment,
        action: &Action,
        before: Option<Inferred>,
    ) {
        if self.traced.is_some() || self.recording.is_some() {
            self.note_ack(core, id, segment, action, before);
        }
    }

    fn note_ack(
        &mut self,
        core: &mut Core,
        id: FlowId,
        segment: &Segment,
        action: &Action,
        before: Option<Inferred>,
    ) {
        let Some(Entry { key, state: flow, .. }) = core.table.get(id) else { return };
        if let (Some(traced), Some(before)) = (&mut self.traced, before) {
            let after = Inferred::from_flow(flow);
            traced.push(TracedAck { at_ns: core.now_ns, key: *key, before, after });
        }
        let passes = u32::from(action.verdict) == sys::VCC_PASS;
        let recording = self.recording.as_mut().filter(|_| is_ack(segment) && passes);
        if recording.is_some_and(|it| !it.note(core.now_us(), key, flow)) {
            core.counters.count(sys::COUNT_TRACE_LOST);
        }
    }
}

fn is_ack(segment: &Segment) -> bool {
    u32::from(segment.flags) & sys::TCP_ACK != 0
}

impl Port {
    /// Starts recording the engine's state at each ACK.
    pub fn trace(&mut self) {
        self.recorder.traced.get_or_insert_default();
    }

    /// All ACKs to the guest since [`Port::trace`], in order.
    pub fn traced(&self) -> &[TracedAck] {
        self.recorder.traced.as_deref().unwrap_or_default()
    }

    /// Begins to record a flow, or all. Returns false if there is a recording already.
    pub fn begin_recording(&mut self, flow: Option<FlowKey>) -> bool {
        let recording = &mut self.recorder.recording;
        let is_free = recording.is_none();
        recording.get_or_insert(Recording { flow, recorded: Recorded::default() });
        is_free
    }

    /// Takes what was recorded since the last time. The memory of `taken` is used again.
    pub fn take_recorded(&mut self, taken: &mut Recorded) {
        taken.acks.clear();
        if let Some(Recording { recorded, .. }) = &mut self.recorder.recording {
            taken.lost = recorded.lost;
            std::mem::swap(&mut taken.acks, &mut recorded.acks);
        }
    }

    pub fn end_recording(&mut self) {
        self.recorder.recording = None;
    }
}
