//! A guest that moves to another host, or comes from one, with what its port has of its connections:
//! what describes them, what is held of them and what is promised (`engine/handover.h`).
//!
//! From [`Port::hand_over`] or [`Port::take_over`] on, the port must not be called with frames or for
//! its deadlines until [`Port::go_on`], when the guest runs here, or [`Port::has_gone`], when it runs
//! elsewhere: neither of two ports doubles or loses what is promised.

mod arriving;
mod leaving;

use vcc_engine::sys;

pub use arriving::Arrived;

use super::Port;
use crate::handover::ROW_MAX_BYTES;
use crate::table::Entry;

/// Of a description, and of the copies of what was promised to peers.
const BESIDE_THE_BUFFER_BYTES: usize = 32 << 20;
/// Of all lines, however large `max_flows` is, because they are kept before they can be judged. 300 000
/// connections have less.
const ROWS_MAX_BYTES: usize = 512 << 20;

impl Port {
    /// A longer state is not for a port like this one.
    pub fn state_limit_bytes(&self) -> usize {
        let rows_bytes = self.max_flows().saturating_mul(ROW_MAX_BYTES).min(ROWS_MAX_BYTES);
        // A buffer exceeds its size by frames that have no room elsewhere.
        2 * self.core.buffer.size_bytes() as usize + rows_bytes + BESIDE_THE_BUFFER_BYTES
    }
}

/// Does the port have something of the connection that must be delivered, or that it must end?
fn owes(entry: &Entry) -> bool {
    let Entry { state: flow, held, snooped, .. } = entry;
    let has_data =
        flow.split_owes(&held.hold) || held.hold.0.held_bytes > 0 || snooped.snoop.is_promise_due();
    has_data || entry.depends()
}

/// Does the connection go along? In its handshake it depends on nothing that is held or promised.
fn travels(entry: &Entry) -> bool {
    let flow = &entry.state;
    let fins = flow.has(sys::FLOW_FIN_GUEST) && flow.has(sys::FLOW_FIN_PEER);
    flow.can_travel() || (u32::from(flow.stage) == sys::STAGE_CLOSED && fins && owes(entry))
}
