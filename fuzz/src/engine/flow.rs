//! One flow: each call of the engine, with the laws asserted that are proved of one call.

use vcc_engine::{Action, FlowState, Params, Pool, Segment, sys};

use crate::steps;

unsafe extern "C-unwind" {
    fn vcc_fuzz_from_guest(
        before: *const FlowState,
        after: *const FlowState,
        params: *const Params,
        segment: *const Segment,
        action: *const Action,
    );
    fn vcc_fuzz_to_guest(
        before: *const FlowState,
        after: *const FlowState,
        params: *const Params,
        segment: *const Segment,
        action: *const Action,
    );
    fn vcc_fuzz_judged(before: *const FlowState, after: *const FlowState);
}

pub struct Flow {
    pub state: FlowState,
    pub params: Params,
    /// Initial sequence numbers of the guest and the peer.
    pub iss: u32,
    pub irs: u32,
}

impl Flow {
    pub fn guest_sends(&mut self, pool: &mut Pool, segment: Segment) -> Action {
        steps::count();
        let before = self.state;
        let action = match self.params.0.pool_weight {
            0 => self.state.from_guest(&self.params, &segment),
            _ => pool.from_guest(&mut self.state, &self.params, segment),
        };
        // SAFETY: all point to live values of the C types, for the length of the call.
        unsafe { vcc_fuzz_from_guest(&before, &self.state, &self.params, &segment, &action) };
        self.forget_if(pool, &action);
        action
    }

    pub fn guest_gets(&mut self, pool: &mut Pool, segment: Segment) -> Action {
        steps::count();
        let before = self.state;
        let action = match self.params.0.pool_weight {
            0 => self.state.to_guest(&self.params, &segment),
            _ => pool.to_guest(&mut self.state, &self.params, segment),
        };
        // SAFETY: likewise.
        unsafe { vcc_fuzz_to_guest(&before, &self.state, &self.params, &segment, &action) };
        self.forget_if(pool, &action);
        action
    }

    /// As the shells do: the engine, then the pool.
    pub fn deadline(&mut self, pool: &mut Pool, now_us: u64, crowded: bool) -> Action {
        steps::count();
        let action = self.state.deadline(&self.params, now_us, crowded);
        if self.params.0.pool_weight > 0 && action.forget == 0 {
            pool.idle(&mut self.state, &self.params, (now_us / 1000) as u32);
        }
        assert!(action.forget != 0 || action.deadline_ms >= 1, "a deadline that is due at once");
        self.forget_if(pool, &action);
        action
    }

    pub fn judge(&mut self, pool: &mut Pool, params: Params) {
        steps::count();
        if params.0.pool_weight != self.params.0.pool_weight {
            self.leave(pool);
        }
        let before = self.state;
        self.params = params;
        self.state.judge_anew(&params);
        // SAFETY: likewise.
        unsafe { vcc_fuzz_judged(&before, &self.state) };
    }

    pub fn forget(&mut self, pool: &mut Pool) {
        self.leave(pool);
        self.state = FlowState::default();
    }

    fn forget_if(&mut self, pool: &mut Pool, action: &Action) {
        if action.forget != 0 {
            self.forget(pool);
        }
    }

    fn leave(&mut self, pool: &mut Pool) {
        pool.leave(&mut self.state, &self.params);
    }

    /// What its pool has charged for it.
    pub fn holds_bytes(&self) -> u32 {
        if u32::from(self.state.stage) != sys::STAGE_ESTABLISHED {
            return 0;
        }
        let ahead = |of: u32| of.wrapping_sub(self.state.snd_una) as i32;
        ahead(self.state.right_edge).max(ahead(self.state.snd_nxt)).max(0) as u32
    }
}
