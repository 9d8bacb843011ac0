//! Passes equal frames through the BPF programs, the natively compiled engine, and the driver
//! domain.

mod laws;
mod outcome;
mod untouched;

use std::collections::HashMap;
use std::fs;

use vcc_engine::{Action, FlowState, Mode, Params, Segment, Underlay, sys};
use vcc_frames::hex;
use vcc_port::{AttachOptions, Counter, counters};

use crate::direction::{DROP, Direction, Key, NEXT};
use crate::domain::Domain;
use crate::layout::Layout;
use crate::loaded::Loaded;
use crate::segment::Parsed;
use crate::setup::now_us;
use crate::state;
pub use outcome::Outcome;
use untouched::opens;

/// A loaded datapath, with the engine and the driver domain to compare.
pub struct DualRun {
    pub datapath: Loaded,
    domain: Domain,
    options: AttachOptions,
    params: Params,
    flows: HashMap<Key, FlowState>,
    counted: HashMap<&'static str, u64>,
    frames: usize,
    /// The step of the test, for messages.
    pub doing: String,
}

impl DualRun {
    /// No timer changes a flow between two frames, however slow the machine is.
    pub fn new(options: &AttachOptions) -> Self {
        DualRun {
            datapath: Loaded::without_timer(options),
            domain: Domain::new(options),
            options: options.clone(),
            params: options.params,
            flows: HashMap::new(),
            counted: HashMap::new(),
            frames: 0,
            doing: String::new(),
        }
    }

    fn mode(&self) -> Mode {
        self.options.params.mode().expect("a mode")
    }

    fn underlay(&self) -> Underlay {
        self.options.params.underlay().expect("an underlay")
    }

    /// Runs one frame through all and compares their outputs. None if the engine does not see the
    /// frame: it was then left untouched and counted.
    pub fn send(&mut self, from: Direction, frame: &[u8], gso_size: u32) -> Option<Outcome> {
        self.frames += 1;
        let parsed = match Parsed::parse(frame, gso_size) {
            Ok(parsed) => parsed,
            Err(counter) => {
                let verdict = self.unread(frame, counter);
                self.leave_untouched(from, frame, gso_size, verdict);
                return None;
            }
        };
        let key = key(frame, &parsed.at, from);
        let Some(before) = self.before(&key, from, &parsed) else {
            let counter = self.refusal(from, &parsed);
            self.leave_untouched(from, frame, gso_size, (NEXT, counter));
            return None;
        };
        Some(self.translate(from, frame, gso_size, &parsed, key, before))
    }

    fn translate(
        &mut self,
        from: Direction,
        frame: &[u8],
        gso_size: u32,
        parsed: &Parsed,
        key: Key,
        before: FlowState,
    ) -> Outcome {
        let started_us = now_us();
        let output = self.run(from, frame, gso_size);
        let ended_us = now_us();
        let after = self.kernel_state(&key);
        let (at_us, action, native) =
            self.native(from, &parsed.segment, before, after, started_us..=ended_us);

        let dropped = u32::from(action.verdict) != sys::VCC_PASS;
        let expected = match dropped {
            true => frame.to_vec(),
            false => parsed.apply(from, &action, frame),
        };
        assert_eq!(output.return_value, if dropped { DROP } else { NEXT }, "{}", self.place(from));
        self.assert_frame(from, &output.frame, &expected);
        self.assert_laws(from, parsed, gso_size, frame, &output.frame);
        self.count_action(&action);
        if parsed.malformed {
            self.count(counters::BAD_OPTIONS);
        }
        let beside = !dropped && u32::from(action.emit) == sys::EMIT_FACK;
        let fack = native
            .filter(|_| beside)
            .map(|state| self.second_pass(&output.frame, gso_size, &action, &state));
        let place = self.place(from);
        let out = self.domain.send(&place, from, at_us, frame, gso_size);
        out.assert_equals(&place, &output, fack.as_deref());
        self.domain.assert_state(&place, &key, native.as_ref());
        match native {
            Some(state) => self.flows.insert(key, state),
            None => self.flows.remove(&key),
        };
        let at = Layout::parse(&output.frame, gso_size).expect("as it came");
        Outcome { at, dropped, frame: output.frame, action, fack }
    }

    fn count_action(&mut self, action: &Action) {
        match u32::from(action.verdict) {
            sys::VCC_DROP if u32::from(action.police) == sys::POLICED_UNKNOWN => {
                self.count(counters::UNKNOWN_DROPPED);
            }
            sys::VCC_DROP if action.police != 0 => self.count(counters::POLICED),
            sys::VCC_DROP => self.count(counters::DROPPED),
            _ => {}
        }
        if action.forged != 0 {
            self.count(counters::FORGED);
        }
        if action.one_direction != 0 {
            self.count(counters::ONE_DIRECTION);
        }
    }

    /// BPF_PROG_RUN returns only the segment; its clone goes to the loopback device. The clone's
    /// second pass is run apart.
    fn second_pass(
        &mut self,
        frame: &[u8],
        gso_size: u32,
        action: &Action,
        state: &FlowState,
    ) -> Vec<u8> {
        // Super-segments of BPF_PROG_RUN have no GSO type, and recent kernels do not clone those.
        if !loopback_is_up() || gso_size > 0 && self.lost_one_more() {
            self.count(counters::REPORT_LOST);
        }
        let output = self.datapath.run_clone(frame, gso_size).expect("it runs");
        assert_eq!(output.return_value, NEXT, "{}", self.doing);
        let parsed = Parsed::parse(frame, gso_size).unwrap_or_else(|counter| panic!("{counter:?}"));
        let capable = self.underlay().sends_all_ect()
            && !state.has(sys::FLOW_ECN_FELL_BACK)
            && !state.has(sys::FLOW_UNHEARD);
        let expected = parsed.fack(&action.feedback, capable, frame);
        self.assert_frame(Direction::FromGuest, &output.frame, &expected);
        output.frame
    }

    /// The native engine's action at the microsecond of the run at which its state equals the
    /// kernel's, including all that depends on time.
    fn native(
        &self,
        from: Direction,
        segment: &Segment,
        before: FlowState,
        after: Option<FlowState>,
        mut during_us: std::ops::RangeInclusive<u64>,
    ) -> (u64, Action, Option<FlowState>) {
        let step = |now_us| {
            let mut state = before;
            let segment = Segment { now_us, ..*segment };
            let action = match from {
                Direction::FromGuest => state.from_guest(&self.params, &segment),
                Direction::ToGuest => state.to_guest(&self.params, &segment),
            };
            (now_us, action, (action.forget == 0).then_some(state))
        };
        let first = step(*during_us.start());
        let equal = |native: &Option<FlowState>| {
            native.as_ref().map(state::bytes) == after.as_ref().map(state::bytes)
        };
        during_us
            .find_map(|now_us| Some(step(now_us)).filter(|(_, _, native)| equal(native)))
            .unwrap_or_else(|| {
                let place = self.place(from);
                match (&after, &first.2) {
                    (Some(kernel), Some(native)) => {
                        panic!("{place}: {}", state::differences(kernel, native))
                    }
                    (Some(_), None) => panic!("{place}: the kernel keeps a flow that has ended"),
                    (None, _) => panic!("{place}: the kernel has no such flow"),
                }
            })
    }

    fn run(&self, from: Direction, frame: &[u8], gso_size: u32) -> vcc_port::RunOutput {
        let output = self.datapath.run(from.program(), frame, gso_size);
        output.unwrap_or_else(|error| panic!("{}: {error}", self.place(from)))
    }

    fn count(&mut self, counter: Counter) {
        *self.counted.entry(counter.name).or_default() += 1;
    }

    fn assert_frame(&self, from: Direction, frame: &[u8], expected: &[u8]) {
        let place = self.place(from);
        assert!(frame == expected, "{place}:\n  got {}\n want {}", hex(frame), hex(expected));
    }

    /// The state that a segment meets; None if it belongs to no flow and creates none.
    fn before(&self, key: &Key, from: Direction, parsed: &Parsed) -> Option<FlowState> {
        if let Some(state) = self.flows.get(key) {
            return Some(*state);
        }
        let room = self.flows.len() < self.options.max_flows as usize;
        (opens(from, parsed) && room && self.mode() != Mode::Drain).then(FlowState::default)
    }

    /// Every flow and every counter of the kernel and of the domain is as expected.
    pub fn assert_all(&self) {
        let kernel = self.kernel_flows();
        assert_eq!(kernel.len(), self.flows.len(), "flows");
        for (key, native) in &self.flows {
            let Some(kernel) = kernel.get(key) else { panic!("the kernel lacks {key:?}") };
            let differences = state::differences(kernel, native);
            assert!(state::bytes(kernel) == state::bytes(native), "{key:?}: {differences}");
        }
        let counted = self.datapath.counters().expect("counters");
        for (counter, value) in counted.iter() {
            let expected = self.counted.get(counter.name).copied().unwrap_or(0);
            assert_eq!(value, expected, "counter {}", counter.name);
        }
        let delays = self.datapath.delays().expect("delays");
        self.domain.assert_all(&self.flows.keys().copied().collect(), &counted, &delays);
    }

    pub fn state(&self, key: &Key) -> Option<&FlowState> {
        self.flows.get(key)
    }

    fn lost_one_more(&self) -> bool {
        let lost = self.datapath.counters().expect("counters").get(counters::REPORT_LOST);
        lost > self.counted.get(counters::REPORT_LOST.name).copied().unwrap_or(0)
    }

    fn kernel_flows(&self) -> HashMap<Key, FlowState> {
        let flows = self.datapath.flows().expect("flows");
        flows.into_iter().map(|flow| ((flow.guest, flow.peer, flow.vlan), flow.state)).collect()
    }

    pub fn kernel_state(&self, key: &Key) -> Option<FlowState> {
        self.kernel_flows().remove(key)
    }

    fn place(&self, from: Direction) -> String {
        let (underlay, mode) = (self.underlay(), self.mode());
        format!("{}: frame {}, {from:?}, {underlay}, {mode}", self.doing, self.frames)
    }
}

/// BPF_PROG_RUN uses the loopback device of the calling thread's namespace.
fn loopback_is_up() -> bool {
    const IFF_UP: u32 = 1;
    let flags = fs::read_to_string("/sys/class/net/lo/flags").expect("the loopback device");
    let flags = u32::from_str_radix(flags.trim().trim_start_matches("0x"), 16).expect("a number");
    flags & IFF_UP != 0
}

fn key(frame: &[u8], at: &Layout, from: Direction) -> Key {
    let [sender, receiver] = at.addresses(frame);
    let vlan = (at.vlan != 0).then_some(at.vlan);
    match from {
        Direction::FromGuest => (sender, receiver, vlan),
        Direction::ToGuest => (receiver, sender, vlan),
    }
}
