//! The rate of all connections of a guest (`engine/guest_rate.h`) at a port that holds segments: what
//! exceeds it waits, and the connections that wait leave in turn.

use std::collections::VecDeque;

use vcc_engine::RateDue;

use super::{NS_PER_US, Port};
use crate::frame::Out;
use crate::table::{Entry, FlowId};
use vcc_engine::FlowKey;

/// Who waits for the guest's bucket.
#[derive(Clone, Default)]
pub(super) struct Pacing {
    /// Connections that wait, in order. One that has ended stays until its turn.
    turns: VecDeque<FlowKey>,
    /// Whose turn it is.
    served: Option<Served>,
    /// When the bucket has something left for the first of them.
    due_ns: Option<u64>,
}

#[derive(Clone)]
struct Served {
    key: FlowKey,
    turn: Turn,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Begun,
    HasSent,
    /// The bucket has nothing left: it is still the first.
    TooEarly,
}

impl Pacing {
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.due_ns
    }
}

impl Port {
    /// May data of the connection leave now? Otherwise it waits for its turn.
    pub(super) fn admits_by_rate(&mut self, id: FlowId) -> bool {
        let now_us = self.core.now_us();
        let Some(Entry { key, state: flow, held, .. }) = self.core.table.get_mut(id) else {
            return true;
        };
        let pacing = &mut self.pacing;
        let due_us = match self.core.rate.due(flow, self.core.treatments.of(flow), now_us) {
            RateDue::Uncapped => return true,
            RateDue::Now => None,
            RateDue::AtUs(due_us) => Some(due_us),
        };
        let served = pacing.served.as_mut().filter(|served| served.key == *key);
        let is_its_turn = pacing.turns.is_empty() || served.is_some();
        if due_us.is_none() && is_its_turn {
            if let Some(Served { turn, .. }) = served {
                *turn = Turn::HasSent;
            }
            return true;
        }
        let due_ns = due_us.map(|due_us| due_us * NS_PER_US);
        let waits = std::mem::replace(&mut held.is_paced, true);
        match served {
            _ if waits => pacing.due_ns = pacing.due_ns.or(due_ns),
            Some(Served { turn, .. }) if *turn == Turn::Begun => {
                *turn = Turn::TooEarly;
                pacing.turns.push_front(*key);
                pacing.due_ns = due_ns;
            }
            _ => {
                pacing.turns.push_back(*key);
                pacing.due_ns = pacing.due_ns.or(due_ns);
            }
        }
        false
    }

    /// Sends what the rate admits by now, of each connection that waits in turn.
    pub(super) fn advance_pacing(&mut self, out: &mut Out) {
        if self.pacing.due_ns.is_none_or(|due_ns| due_ns > self.core.now_ns) {
            return;
        }
        self.pacing.due_ns = None;
        // A connection that exceeds the rate after its turn is behind these.
        for _ in 0..self.pacing.turns.len() {
            let Some(key) = self.pacing.turns.pop_front() else { break };
            let Some(id) = self.core.table.find(&key) else { continue };
            let Some(Entry { held, .. }) = self.core.table.get_mut(id) else { continue };
            held.is_paced = false;
            self.pacing.served = Some(Served { key, turn: Turn::Begun });
            self.resend(id, out);
            self.release(id, out);
            self.split.record(&mut self.core, id);
            if self.pacing.served.take().is_some_and(|served| served.turn == Turn::TooEarly) {
                break;
            }
        }
    }
}
