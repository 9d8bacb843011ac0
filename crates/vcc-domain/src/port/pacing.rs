//! The rate of all connections of a guest (`engine/guest_rate.h`) at a port that holds segments: what
//! exceeds it waits, and the connections that wait leave in turn.

use std::collections::VecDeque;

use vcc_engine::RateDue;

use super::NS_PER_US;
use super::core::Core;
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

    /// May data of the connection leave now? Otherwise it waits for its turn.
    pub(super) fn admits(&mut self, core: &mut Core, id: FlowId) -> bool {
        let now_us = core.now_us();
        let Some(Entry { key, state: flow, held, .. }) = core.table.get_mut(id) else {
            return true;
        };
        let due_us = match core.rate.due(flow, core.treatments.params_of(flow), now_us) {
            RateDue::Uncapped => return true,
            RateDue::Now => None,
            RateDue::AtUs(due_us) => Some(due_us),
        };
        let served = self.served.as_mut().filter(|served| served.key == *key);
        let is_its_turn = self.turns.is_empty() || served.is_some();
        if due_us.is_none() && is_its_turn {
            if let Some(Served { turn, .. }) = served {
                *turn = Turn::HasSent;
            }
            return true;
        }
        let due_ns = due_us.map(|due_us| due_us * NS_PER_US);
        let waits = std::mem::replace(&mut held.is_paced, true);
        match served {
            _ if waits => self.due_ns = self.due_ns.or(due_ns),
            Some(Served { turn, .. }) if *turn == Turn::Begun => {
                *turn = Turn::TooEarly;
                self.turns.push_front(*key);
                self.due_ns = due_ns;
            }
            _ => {
                self.turns.push_back(*key);
                self.due_ns = self.due_ns.or(due_ns);
            }
        }
        false
    }

    /// Begins the turns if the bucket has something left: how many there are. A connection that exceeds
    /// the rate after its turn is behind these.
    pub(super) fn begin_turns(&mut self, core: &Core) -> usize {
        match self.due_ns.take_if(|due_ns| *due_ns <= core.now_ns) {
            Some(_) => self.turns.len(),
            None => 0,
        }
    }

    /// The connection whose turn it is; None if it has ended.
    pub(super) fn begin_turn(&mut self, core: &mut Core) -> Option<FlowId> {
        let key = self.turns.pop_front()?;
        let id = core.table.find(&key)?;
        let Entry { held, .. } = core.table.get_mut(id)?;
        held.is_paced = false;
        self.served = Some(Served { key, turn: Turn::Begun });
        Some(id)
    }

    /// The connection has sent what the rate admits; false if that was nothing.
    pub(super) fn end_turn(&mut self) -> bool {
        self.served.take().is_none_or(|served| served.turn != Turn::TooEarly)
    }
}
