//! Sequences of segments from dishonest ends, deadlines, changes of treatment and steps of the clock,
//! for flows that may share a pool.

mod ends;
mod flow;
mod segment;

use vcc_engine::{FlowState, Pool, sys};

use crate::input::Input;
use crate::params::params;
use ends::Ends;
use flow::Flow;

const MOST_FLOWS: u8 = 3;

pub fn run(bytes: &[u8]) {
    let input = &mut Input::new(bytes);
    let mut run = Run::new(input);
    while !input.is_empty() {
        run.step(input);
        run.check_pool();
    }
    run.show();
}

struct Run {
    flows: Vec<Flow>,
    pool: Pool,
    pool_bytes: u32,
    now_us: u64,
}

impl Run {
    fn new(input: &mut Input) -> Self {
        let shape = input.u8();
        let pool_bytes = [0, 0, 1 << 18, 1 << 14, 1 << 30, 1][usize::from(shape >> 4) % 6];
        // Also shortly before the clock's lower half, in us or ms, wraps.
        let now_us =
            input.pick(&[1_000_000, u64::from(u32::MAX) - 50_000, 0, u64::from(u32::MAX) * 1000]);
        let number = [0, 0x7fff_ff00, 0xffff_ff00, 0x8000_0000];
        let flows = (0..=shape % MOST_FLOWS).map(|_| Flow {
            state: FlowState::default(),
            params: params(input, pool_bytes),
            iss: input.pick(&number),
            irs: input.pick(&number),
        });
        Run { flows: flows.collect(), pool: Pool::default(), pool_bytes, now_us }
    }

    fn step(&mut self, input: &mut Input) {
        let what = input.u8();
        let which = usize::from(what >> 6) % self.flows.len();
        let (flow, pool) = (&mut self.flows[which], &mut self.pool);
        match what & 0x1f {
            0..9 => {
                let segment = segment::segment(input, flow, false, self.now_us);
                flow.guest_gets(pool, segment);
            }
            9..15 => {
                let segment = segment::segment(input, flow, true, self.now_us);
                flow.guest_sends(pool, segment);
            }
            15..18 => {
                let how = input.u8();
                Ends::new(flow, pool, self.now_us).data(u32::from(how & 0x3f) + 1, how & 0x40 != 0);
            }
            18 => {
                let nxt = flow.state.snd_nxt;
                Ends::new(flow, pool, self.now_us).acknowledge(nxt, 0);
            }
            19 | 20 => self.honestly(which, |ends| ends.transfer(input)),
            21 => self.honestly(which, |ends| ends.loss(input)),
            22 => self.honestly(which, |ends| ends.peer_data(input)),
            23 => {
                flow.forget(pool);
                self.honestly(which, |ends| ends.open(input));
            }
            24 => {
                flow.deadline(pool, self.now_us, what & 0x20 != 0);
            }
            25 => {
                let params = params(input, self.pool_bytes);
                flow.judge(pool, params);
            }
            26 => self.wait_for_deadline(which),
            _ => self.wait(input),
        }
    }

    fn honestly(&mut self, which: usize, what: impl FnOnce(&mut Ends)) {
        let mut ends = Ends::new(&mut self.flows[which], &mut self.pool, self.now_us);
        what(&mut ends);
        self.now_us = ends.now_us;
    }

    fn wait(&mut self, input: &mut Input) {
        const DAY_US: u64 = 24 * 3600 * 1_000_000;
        let steps_us =
            [1, 100, 1_000, 20_000, 250_000, 3_000_000, 130_000_000, 6 * DAY_US, 1 << 31];
        // CPUs' clocks differ a little.
        match input.u8() {
            255 => self.now_us = self.now_us.saturating_sub(100),
            other => self.now_us += steps_us[usize::from(other) % steps_us.len()],
        }
    }

    fn wait_for_deadline(&mut self, which: usize) {
        let flow = &mut self.flows[which];
        let action = flow.deadline(&mut self.pool, self.now_us, false);
        self.now_us += u64::from(action.deadline_ms) * 1000;
        flow.deadline(&mut self.pool, self.now_us, false);
    }

    /// The pool's account is what its flows hold.
    fn check_pool(&self) {
        let sum = |flag: u32, of: fn(&Flow) -> u32| {
            let counted = self.flows.iter().filter(|flow| u32::from(flow.state.shell) & flag != 0);
            counted.map(of).fold(0, u32::wrapping_add)
        };
        let sys::vcc_pool { held_bytes, idle_bytes, weight, .. } = self.pool.0;
        assert_eq!(held_bytes, sum(sys::SHELL_POOL_MEMBER, Flow::holds_bytes), "held by members");
        assert_eq!(idle_bytes, sum(sys::SHELL_POOL_IDLE, Flow::holds_bytes), "held by idle flows");
        let weights = sum(sys::SHELL_POOL_ACTIVE, |flow| flow.params.0.pool_weight.into());
        assert_eq!(weight, weights, "the weight of active flows");
    }

    /// What is shown of a flow is computed from any state.
    fn show(&self) {
        for Flow { state, params, .. } in &self.flows {
            let _ = state.limited_by(params, None, self.now_us);
            let _ = state.with_open_wait(params, self.now_us).delayed_by();
            let _ = (state.ecn_guest(), state.ecn_fabric(), state.srtt_us(), state.rto_us(params));
            let _ = (state.window_shown_bytes(), state.window_received_bytes(), state.alpha());
        }
    }
}
