//! The rate of all connections of a guest (`engine/guest_rate.h`) at a port that holds segments: what
//! exceeds it waits, and the connections that wait leave in turn.

use std::collections::VecDeque;

use vcc_engine::GuestRate;

use super::{NS_PER_US, Port};
use crate::frame::Out;
use crate::table::{Entry, FlowId};
use vcc_engine::FlowKey;

/// The guest's bucket, and who waits for it.
#[derive(Clone, Default)]
pub(super) struct Pacing {
    pub bucket: GuestRate,
    /// Connections that wait, in order. One that has ended stays until its turn.
    turns: VecDeque<FlowKey>,
    /// Whose turn it is, while it is served.
    served: Option<FlowKey>,
    /// When the bucket has something left for the first of them.
    due_ns: Option<u64>,
}

impl Pacing {
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.due_ns
    }
}

impl Port {
    /// May data of the connection leave now? Otherwise it waits for its turn.
    pub(super) fn admits_by_rate(&mut self, id: FlowId) -> bool {
        let now_us = self.now_us();
        let Some(Entry { key, state: flow, held, .. }) = self.table.get_mut(id) else {
            return true;
        };
        let params = self.treatments.of(flow);
        if params.0.guest_rate_cap_bytes_per_ms == 0 {
            return true;
        }
        let pacing = &mut self.pacing;
        let due_us = pacing.bucket.due_us(flow, params, now_us);
        let is_its_turn = pacing.turns.is_empty() || pacing.served == Some(*key);
        if due_us.is_none() && is_its_turn {
            return true;
        }
        if !std::mem::replace(&mut held.is_paced, true) {
            pacing.turns.push_back(*key);
        }
        if let Some(due_us) = due_us {
            pacing.due_ns.get_or_insert(due_us * NS_PER_US);
        }
        false
    }

    /// Sends what the rate admits by now, of each connection that waits in turn.
    pub(super) fn advance_pacing(&mut self, out: &mut Out) {
        if self.pacing.due_ns.is_none_or(|due_ns| due_ns > self.now_ns) {
            return;
        }
        self.pacing.due_ns = None;
        // Whoever still exceeds the rate after its turn is behind these.
        for _ in 0..self.pacing.turns.len() {
            let Some(key) = self.pacing.turns.pop_front() else { break };
            let Some(id) = self.table.find(&key) else { continue };
            let Some(Entry { state: flow, held, .. }) = self.table.get_mut(id) else { continue };
            let due_us =
                self.pacing.bucket.due_us(flow, self.treatments.of(flow), self.now_ns / NS_PER_US);
            if let Some(due_us) = due_us {
                self.pacing.due_ns = Some(due_us * NS_PER_US);
                self.pacing.turns.push_front(key);
                break;
            }
            held.is_paced = false;
            self.pacing.served = Some(key);
            self.resend(id, out);
            self.release(id, out);
            self.record(id);
            self.pacing.served = None;
        }
    }
}
