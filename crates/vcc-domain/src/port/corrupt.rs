//! Segments of the peer that the guest discards for their checksums. Most ports may treat one as
//! valid: the guest discards it and repeats what is lost. A port that sends segments of its own
//! must not: they have right checksums, even if they repeat a corrupt one.

use vcc_engine::sys;

use super::core::Core;
use crate::frame::Frame;
use crate::parse::Parsed;
use crate::snoop::has_right_sums;
use crate::table::{Entry, FlowId};

impl Core {
    /// Does the guest discard a segment that the port would believe (law 17)? By its acknowledgement, a
    /// port would discard what nobody else has (law 16), or repeat it to the guest (law 9); by its
    /// timestamp, have the guest discard what the peer sends (PAWS); by a RST, forget what is promised.
    pub(super) fn is_corrupt(&self, id: FlowId, frame: &Frame, parsed: &Parsed) -> bool {
        self.table.get(id).is_some_and(|entry| self.speaks(entry)) && !has_right_sums(frame, parsed)
    }

    /// Does the port send segments of its own on the connection, or keep what nobody else has?
    pub(super) fn speaks(&self, Entry { state: flow, held, snooped, .. }: &Entry) -> bool {
        let treatment = self.treatments.params_of(flow).0;
        held.hold.0.begun != 0
            || treatment.emit != 0
            || u32::from(treatment.act) != sys::ACT_WINDOW
            || snooped.snoop.is_promise_due()
            || u32::from(treatment.receive) >= sys::RECEIVE_BUFFER
    }
}
