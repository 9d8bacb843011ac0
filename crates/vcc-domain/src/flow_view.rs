//! A flow as other processes see it.

use vcc_engine::{Buffer, FlowState, Params};

use crate::table::Entry;
use vcc_engine::FlowKey;

/// What a flow has of its port's buffer (`engine/hold_buffer.h`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferShare {
    /// By what is held and retained.
    pub held_bytes: u32,
    /// Besides: shown to the guest, which has not used it yet.
    pub granted_bytes: u32,
    /// The most that it may have.
    pub share_bytes: u32,
    /// What may be in flight, whatever the buffer keeps.
    pub leaving_bytes: u32,
    /// `HOLD_...`
    pub state: u32,
    /// How often its share was full, and how often it repaired a loss.
    pub no_buffer: u32,
    pub packet_loss: u32,
}

/// A flow, and what the port has of it.
#[derive(Clone, Copy)]
pub struct Seen {
    pub key: FlowKey,
    pub state: FlowState,
    pub share: BufferShare,
    /// Acknowledged in another's name, and not yet by him.
    pub promised_bytes: u32,
}

impl Seen {
    pub(crate) fn from_entry(flow: &Entry, buffer: &Buffer, params: &Params) -> Self {
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
        let hold = &held.hold.0;
        let share = BufferShare {
            held_bytes: hold.held_bytes,
            granted_bytes: hold.granted_bytes,
            share_bytes: state.hold_share_bytes(&held.hold, buffer, params),
            leaving_bytes: state.hold_leaving_bytes(&held.hold, params),
            state: hold.state.into(),
            no_buffer: hold.no_buffer,
            packet_loss: hold.packet_loss,
        };
        let share = if state.is_holding(&held.hold, params) { share } else { Default::default() };
        let state = state.snoop_asked(snoop);
        Seen { key: *key, state, share, promised_bytes: by_split + by_snoop }
    }
}
