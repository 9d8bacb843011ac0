//! What a guest's congestion control should know of its connections (vFlood, 3.2).

use vcc_engine::{Act, FlowKey, Mode, Params, Underlay, sys};

use super::Port;
use super::core::Core;
use crate::table::Entry;

/// What the port has for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    pub key: FlowKey,
    /// The underlay's window and the connection's share of the buffer, which is less than the guest was once
    /// shown if the share has shrunk. None: the port does not hold the connection, or its share is full.
    pub window_bytes: Option<u32>,
    /// Segments that the port has sent again itself.
    pub repaired: u32,
}

impl Port {
    /// Is each connection that begins now held, or else shown a window that limits it, unless it uses ECN?
    pub fn holds_new(&self) -> bool {
        let Core { treatments, table, .. } = &self.core;
        let single = treatments.single().mode();
        single != Some(Mode::Drain)
            && table.len() < table.max_flows()
            && treatments.any(holds)
            && !treatments.any(|params| !limits(params))
    }

    /// Adds what the port has for the established connections in so many places of its table, `from` one on.
    /// Returns the next place; None at the end.
    pub fn grants(&self, from: usize, places: usize, grants: &mut Vec<Grant>) -> Option<usize> {
        let next = from + places;
        let entries = self.core.table.at_places(from..next);
        grants.extend(entries.filter_map(|entry| grant(&self.core, entry)));
        (next < self.core.table.places()).then_some(next)
    }
}

/// Is a connection under it shown a window that limits it, but for one whose ECN vcc leaves alone?
fn limits(params: &Params) -> bool {
    params.mode() == Some(Mode::Enforce) && params.underlay().is_some_and(Underlay::controls)
}

fn holds(params: &Params) -> bool {
    limits(params) && params.0.act >= Act::Hold.number()
}

/// None before and after a connection is established.
fn grant(core: &Core, entry: &Entry) -> Option<Grant> {
    let Entry { key, state: flow, held, .. } = entry;
    if u32::from(flow.stage) != sys::STAGE_ESTABLISHED {
        return None;
    }
    let params = core.treatments.params_of(flow);
    let hold_state = u32::from(held.hold.0.state);
    let is_held = flow.is_holding(&held.hold, params)
        && ![sys::HOLD_NO_BUFFER, sys::HOLD_DRAINING].contains(&hold_state);
    let window_bytes = || {
        let share_bytes = flow.hold_share_bytes(&held.hold, &core.buffer, params);
        // What is in flight is retained as a part of the share.
        match held.hold.retains() {
            true => share_bytes,
            false => {
                share_bytes.saturating_add(flow.cc.cwnd_segs.saturating_mul(flow.mss_bytes.into()))
            }
        }
    };
    Some(Grant {
        key: *key,
        window_bytes: is_held.then(window_bytes),
        repaired: if held.hold.retains() { flow.retransmissions } else { 0 },
    })
}
