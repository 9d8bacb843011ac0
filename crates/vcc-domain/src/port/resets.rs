//! RSTs of the peer on connections with promises.

use vcc_engine::sys;

use super::Port;
use crate::frame::Frame;
use crate::parse::Parsed;
use crate::snoop::has_right_sums;
use crate::table::{Entry, FlowId};

impl Port {
    /// Is it a RST that the guest discards for its checksum? It must not end a promise (laws 16, 17).
    pub(super) fn is_corrupt_reset(&self, id: FlowId, frame: &Frame, parsed: &Parsed) -> bool {
        if u32::from(parsed.segment.flags) & sys::TCP_RST == 0 {
            return false;
        }
        let Some(Entry { state: flow, held, snooped, .. }) = self.table.get(id) else {
            return false;
        };
        let owes = flow.split_owes(&held.hold) || snooped.snoop.is_promise_due();
        owes && !has_right_sums(frame, parsed)
    }
}
