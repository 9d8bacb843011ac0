//! Generates segments to the guest, which the engine requests (`engine/emit.h`).

use std::collections::VecDeque;

use vcc_engine::{Action, FlowState, sys};

use crate::ack::ack_to_guest;
use crate::frame::Frame;
use crate::neighbours::Neighbours;
use vcc_engine::FlowKey;

/// By then, a guest that counts duplicate ACKs has retransmitted.
const SECOND_LOOK_NS: u64 = 10_000_000;

/// A guest to which duplicate ACKs were sent, and the state of its flow then.
#[derive(Clone)]
struct Prodded {
    look_ns: u64,
    key: FlowKey,
    snd_una: u32,
    dupacks: u16,
    retransmissions: u32,
}

impl Prodded {
    /// Has nothing happened since?
    fn is_due(&self, flow: &FlowState) -> bool {
        flow.snd_una == self.snd_una
            && u32::from(flow.stage) == sys::STAGE_ESTABLISHED
            && flow.has(sys::FLOW_PRODDED)
            && flow.dupacks == self.dupacks
            && flow.retransmissions == self.retransmissions
    }
}

/// True if segments could not be sent, because no SYN revealed the guest's MAC address.
#[must_use]
pub(crate) struct Unsent(pub bool);

#[derive(Clone, Default)]
pub(crate) struct Emitter {
    pub neighbours: Neighbours,
    /// In order of time.
    prodded: VecDeque<Prodded>,
}

impl Emitter {
    /// Sends the segments that the engine requests at a deadline.
    pub(crate) fn carry_out(
        &mut self,
        now_ns: u64,
        key: &FlowKey,
        flow: &FlowState,
        action: &Action,
        to_guest: &mut Vec<Frame>,
    ) -> Unsent {
        let mut unsent = false;
        if action.dupacks > 0 {
            self.prodded.push_back(Prodded {
                look_ns: now_ns.saturating_add(SECOND_LOOK_NS),
                key: *key,
                snd_una: flow.snd_una,
                dupacks: flow.dupacks,
                retransmissions: flow.retransmissions,
            });
            unsent |= self.send(key, flow, action.dupacks, to_guest).0;
        }
        if action.update != 0 {
            debug_assert!(action.window == flow.window_shown, "the flow's window is the action's");
            unsent |= self.send(key, flow, 1, to_guest).0;
        }
        Unsent(unsent)
    }

    /// Sends a window update.
    pub(crate) fn update(
        &self,
        key: &FlowKey,
        flow: &FlowState,
        to_guest: &mut Vec<Frame>,
    ) -> Unsent {
        self.send(key, flow, 1, to_guest)
    }

    pub(crate) fn next_look_ns(&self) -> Option<u64> {
        self.prodded.front().map(|prodded| prodded.look_ns)
    }

    /// The guest may have taken the first duplicate for a window update: Linux does if the peer has
    /// sent data since its last one (tcp_may_update_window). Then one more is needed. Must be
    /// called until it returns None.
    pub(crate) fn look_again<'flow>(
        &mut self,
        now_ns: u64,
        flow_of: impl FnOnce(&FlowKey) -> Option<&'flow FlowState>,
        to_guest: &mut Vec<Frame>,
    ) -> Option<Unsent> {
        if self.next_look_ns()? > now_ns {
            return None;
        }
        let prodded = self.prodded.pop_front()?;
        let flow = flow_of(&prodded.key).filter(|flow| prodded.is_due(flow));
        let unsent = flow.map(|flow| self.send(&prodded.key, flow, 1, to_guest));
        Some(unsent.unwrap_or(Unsent(false)))
    }

    fn send(
        &self,
        key: &FlowKey,
        flow: &FlowState,
        copies: u8,
        to_guest: &mut Vec<Frame>,
    ) -> Unsent {
        let Some(neighbour) = self.neighbours.find(key) else { return Unsent(true) };
        let frame = ack_to_guest(key, flow, neighbour);
        to_guest.extend(std::iter::repeat_n(frame, copies.into()));
        Unsent(false)
    }
}
