//! A host's port.

use vcc_engine::{Action, FlowState, Params, sys};

use super::Laws;

/// A host's port: the engine's state, and the laws that check it.
pub(super) struct Port {
    pub(super) params: Params,
    pub(super) flow: Option<FlowState>,
    pub(super) deadline_at: u64,
    pub(super) laws: Laws,
}

impl Port {
    pub(super) fn new(params: Params, opens: bool) -> Self {
        Port { params, flow: None, deadline_at: u64::MAX, laws: Laws::new(params, opens) }
    }

    pub(super) fn flow(&self) -> FlowState {
        self.flow.unwrap_or_default()
    }

    /// Keeps the state and sets the deadline anew, as a shell does after each segment.
    pub(super) fn after_call(&mut self, now_us: u64, flow: FlowState, action: &Action) {
        // A shell creates flows for SYNs only.
        let begun = u32::from(flow.stage) != sys::STAGE_NONE;
        self.flow = (action.forget == 0 && begun).then_some(flow);
        let mut probe = flow;
        let wait = probe.deadline(&self.params, now_us, false);
        self.deadline_at = now_us + u64::from(wait.deadline_ms) * 1000;
    }

    pub(super) fn deadline(&mut self, now_us: u64) {
        let Some(before) = self.flow else { return };
        let mut flow = before;
        let action = flow.deadline(&self.params, now_us, false);
        self.laws.time_passed(&before, &flow, &action);
        self.flow = (action.forget == 0).then_some(flow);
        self.deadline_at = now_us + u64::from(action.deadline_ms.max(1)) * 1000;
    }
}
