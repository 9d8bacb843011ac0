//! A flow as other processes see it.

use vcc_engine::FlowState;

use crate::table::Entry;
use vcc_engine::FlowKey;

/// A flow, and what the port has of it.
#[derive(Clone, Copy)]
pub struct Seen {
    pub key: FlowKey,
    pub state: FlowState,
    /// Of the port's buffer.
    pub held_bytes: u32,
    /// Acknowledged in another's name, and not yet by him.
    pub promised_bytes: u32,
}

impl Seen {
    pub(crate) fn from_entry(flow: &Entry) -> Self {
        let Entry { key, state, held, snooped, .. } = flow;
        let by_split = match state.split_owes(&held.hold) {
            true => held.hold.0.promised.wrapping_sub(state.snd_una),
            false => 0,
        };
        let snoop = &snooped.snoop;
        let by_snoop = match snoop.is_promise_due() {
            true => snoop.0.ring_nxt.wrapping_sub(snoop.0.guest_ack),
            false => 0,
        };
        let (held_bytes, promised_bytes) = (held.hold.0.held_bytes, by_split + by_snoop);
        Seen { key: *key, state: *state, held_bytes, promised_bytes }
    }
}
