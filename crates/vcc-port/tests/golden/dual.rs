//! The same frames through the BPF programs, through the natively compiled engine, and through the
//! driver domain.

use std::collections::HashMap;
use std::fs;
use std::net::SocketAddr;

use vcc_engine::{Action, FlowState, Mode, Params, Segment, Treatment, sys};
use vcc_port::{AttachOptions, Counter, Datapath, Program, counters};

use crate::checksum;
use crate::domain::Domain;
use crate::layout::{Layout, may_hold_tcp};
use crate::segment::Parsed;
use crate::state;
use crate::wire::{ACK, SYN, TCP_BYTES};

/// What the programs return: TCX_NEXT and TCX_DROP of linux/bpf.h.
pub const NEXT: i32 = -1;
pub const DROP: i32 = 2;

/// A flow's timer does not fire in its first second.
pub const TIMER_QUIET_US: u64 = 900_000;

/// What most tests attach with: the defaults, and a table that is small, as it is read after every
/// frame.
pub fn usual() -> AttachOptions {
    AttachOptions { max_flows: 1024, ..AttachOptions::default() }
}

/// The same but for how connections are treated.
pub fn usually(treatment: Treatment) -> AttachOptions {
    AttachOptions { treatment, ..usual() }
}

/// Guest, peer and VLAN id.
pub type Key = (SocketAddr, SocketAddr, Option<u16>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    FromGuest,
    ToGuest,
}

impl Direction {
    pub const BOTH: [Direction; 2] = [Direction::FromGuest, Direction::ToGuest];

    pub fn other(self) -> Direction {
        match self {
            Direction::FromGuest => Direction::ToGuest,
            Direction::ToGuest => Direction::FromGuest,
        }
    }

    pub fn program(self) -> Program {
        match self {
            Direction::FromGuest => Program::FromGuest,
            Direction::ToGuest => Program::ToGuest,
        }
    }
}

struct Native {
    state: FlowState,
    born_us: u64,
}

/// A loaded datapath beside the engine.
pub struct DualRun {
    pub datapath: Datapath,
    /// None from when the kernel's timer has changed a flow: that was at a moment of its own.
    pub domain: Option<Domain>,
    options: AttachOptions,
    params: Params,
    flows: HashMap<Key, Native>,
    counted: HashMap<&'static str, u64>,
    frames: usize,
    /// What the test is at, for its messages.
    pub doing: String,
}

/// What came out of both.
pub struct Outcome {
    pub at: Layout,
    /// Then its frame is the one that came.
    pub dropped: bool,
    pub frame: Vec<u8>,
    pub action: Action,
    /// What goes beside it.
    pub fack: Option<Vec<u8>>,
}

impl Outcome {
    pub fn options(&self) -> &[u8] {
        &self.frame[self.at.l4 + TCP_BYTES..self.at.payload]
    }

    pub fn flags(&self) -> u16 {
        self.at.flags(&self.frame)
    }

    pub fn window(&self) -> u16 {
        self.at.window(&self.frame)
    }

    pub fn ecn(&self) -> u8 {
        self.at.ecn(&self.frame)
    }
}

/// The clock of bpf_ktime_get_ns.
pub fn now_us() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills in a live timespec.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    assert_eq!(status, 0);
    now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1_000
}

impl DualRun {
    /// No timer changes a flow between two frames, however slow the machine.
    pub fn new(options: &AttachOptions) -> Self {
        Self::of(Datapath::load_without_timer(options), options)
    }

    pub fn with_timer(options: &AttachOptions) -> Self {
        Self::of(Datapath::load(options), options)
    }

    fn of(datapath: vcc_port::Result<Datapath>, options: &AttachOptions) -> Self {
        DualRun {
            datapath: datapath.expect("the datapath loads"),
            domain: Some(Domain::new(options)),
            options: options.clone(),
            params: options.treatment.params(),
            flows: HashMap::new(),
            counted: HashMap::new(),
            frames: 0,
            doing: String::new(),
        }
    }

    /// Does this port leave every frame as it is?
    pub fn changes_nothing(&self) -> bool {
        self.options.treatment.mode == Mode::Shadow
            || self.options.treatment.underlay.name() == "transparent"
    }

    /// Runs one frame through both and compares what they make of it. None where the frame is
    /// not the engine's business: it then passed untouched and was counted.
    pub fn send(&mut self, from: Direction, frame: &[u8], gso_size: u32) -> Option<Outcome> {
        self.frames += 1;
        let parsed = match Parsed::of(frame, gso_size) {
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
        if let Some(domain) = &mut self.domain {
            let out = domain.send(&place, from, at_us, frame, gso_size);
            out.assert_equals(&place, &output, fack.as_deref());
            domain.assert_state(&place, &key, native.as_ref());
        }
        match native {
            Some(state) => {
                let born_us = self.flows.get(&key).map_or(started_us, |flow| flow.born_us);
                self.flows.insert(key, Native { state, born_us });
            }
            None => {
                self.flows.remove(&key);
            }
        }
        let at = Layout::of(&output.frame, gso_size).expect("as it came");
        Outcome { at, dropped, frame: output.frame, action, fack }
    }

    fn count_action(&mut self, action: &Action) {
        match u32::from(action.verdict) {
            sys::VCC_DROP if action.police != 0 => self.count(counters::POLICED),
            sys::VCC_DROP => self.count(counters::DROPPED),
            _ => {}
        }
        if action.forged != 0 {
            self.count(counters::FORGED);
        }
    }

    /// BPF_PROG_RUN sees only the segment, whose clone goes to the loopback device that it stands
    /// on. What becomes of the clone is looked at apart.
    fn second_pass(
        &mut self,
        frame: &[u8],
        gso_size: u32,
        action: &Action,
        state: &FlowState,
    ) -> Vec<u8> {
        // Its super-segments have no type, and recent kernels clone none such.
        if !loopback_is_up() || gso_size > 0 && self.lost_one_more() {
            self.count(counters::REPORT_LOST);
        }
        let output = self.datapath.run_clone(frame, gso_size).expect("it runs");
        assert_eq!(output.return_value, NEXT, "{}", self.doing);
        let parsed = Parsed::of(frame, gso_size).unwrap_or_else(|counter| panic!("{counter:?}"));
        let capable = self.options.treatment.underlay.name().starts_with("dctcp")
            && !state.has(sys::FLOW_ECN_FELL_BACK)
            && !state.has(sys::FLOW_UNHEARD);
        let expected = parsed.fack(&action.feedback, capable, frame);
        self.assert_frame(Direction::FromGuest, &output.frame, &expected);
        output.frame
    }

    /// The native engine's answer at that microsecond of the run at which it leaves the state
    /// that the kernel has: then also what is derived from time is equal.
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

    /// The state that the next segment meets; None where it is of no flow and makes none.
    fn before(&mut self, key: &Key, from: Direction, parsed: &Parsed) -> Option<FlowState> {
        if let Some(flow) = self.flows.get(key) {
            if now_us() - flow.born_us < TIMER_QUIET_US {
                return Some(flow.state);
            }
            let (native, ticked) = (flow.state, self.after_timer(key));
            if state::bytes(&native) != state::bytes(&ticked) {
                self.domain = None;
            }
            return Some(ticked);
        }
        let room = self.flows.len() < self.options.max_flows as usize;
        (opens(from, parsed) && room && self.options.treatment.mode != Mode::Drain)
            .then(FlowState::default)
    }

    /// A flow's timer may meanwhile have told the engine of a timeout. Its time is in the state.
    fn after_timer(&self, key: &Key) -> FlowState {
        let native = self.flows[key].state;
        let kernel = self.kernel_state(key).expect("no flow of a test is old enough to expire");
        if state::bytes(&kernel) == state::bytes(&native) {
            return native;
        }
        let now = now_us();
        let ago = (now as u32).wrapping_sub(kernel.progress_us);
        let mut ticked = native;
        ticked.deadline(&self.params, now - u64::from(ago));
        let differences = state::differences(&kernel, &ticked);
        assert!(state::bytes(&kernel) == state::bytes(&ticked), "by the timer: {differences}");
        kernel
    }

    /// Under what a TCP segment is counted that has no flow and gets none.
    fn refusal(&self, from: Direction, parsed: &Parsed) -> Option<Counter> {
        match opens(from, parsed) {
            false if parsed.is_signed() => Some(counters::SIGNED),
            false => Some(counters::UNKNOWN),
            true if self.options.treatment.mode == Mode::Drain => None,
            true => Some(counters::TABLE_FULL),
        }
    }

    /// What becomes of a frame of which no segment can be made, for this reason.
    fn unread(&self, frame: &[u8], counter: Counter) -> (i32, Option<Counter>) {
        let Treatment { police, mode, .. } = self.options.treatment;
        let polices = police && matches!(mode, Mode::Enforce | Mode::Drain);
        match polices && counter != counters::NOT_TCP && may_hold_tcp(frame) {
            true => (DROP, Some(counters::UNJUDGED)),
            false => (NEXT, Some(counter)),
        }
    }

    fn leave_untouched(
        &mut self,
        from: Direction,
        frame: &[u8],
        gso_size: u32,
        (verdict, counter): (i32, Option<Counter>),
    ) {
        let output = self.run(from, frame, gso_size);
        let place = self.place(from);
        assert_eq!(output.return_value, verdict, "{place}");
        self.assert_frame(from, &output.frame, frame);
        if let Some(domain) = &mut self.domain {
            let out = domain.send(&place, from, now_us(), frame, gso_size);
            out.assert_equals(&place, &output, None);
        }
        if let Some(counter) = counter {
            self.count(counter);
        }
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

    /// What holds whatever the engine decided.
    fn assert_laws(
        &self,
        from: Direction,
        parsed: &Parsed,
        gso_size: u32,
        frame: &[u8],
        out: &[u8],
    ) {
        let place = self.place(from);
        let after = Parsed::of(out, gso_size).unwrap_or_else(|counter| panic!("{counter:?}"));
        assert_eq!(
            checksum::verify(frame, &parsed.at),
            checksum::verify(out, &after.at),
            "{place}: checksums"
        );
        let [before, after] = match parsed.header_bytes() == after.header_bytes()
            && parsed.segment.options == after.segment.options
        {
            true => [parsed.fixed_part(frame), after.fixed_part(out)],
            false => {
                [parsed.fixed_part_without_options(frame), after.fixed_part_without_options(out)]
            }
        };
        assert_eq!(before, after, "{place}: what must stay");
        if self.changes_nothing() {
            self.assert_frame(from, out, frame);
        }
    }

    /// At a run's end: every flow and every counter of the kernel is as expected.
    pub fn assert_all(&self) {
        let kernel = self.kernel_flows();
        assert_eq!(kernel.len(), self.flows.len(), "flows");
        for key in self.flows.keys() {
            assert!(kernel.contains_key(key), "the kernel lacks {key:?}");
            self.after_timer(key);
        }
        let counted = self.datapath.counters().expect("counters");
        for (counter, value) in counted.iter() {
            let expected = self.counted.get(counter.name).copied().unwrap_or(0);
            assert_eq!(value, expected, "counter {}", counter.name);
        }
        if let Some(domain) = &self.domain {
            domain.assert_all(&self.flows.keys().copied().collect(), &counted);
        }
    }

    pub fn state(&self, key: &Key) -> Option<&FlowState> {
        self.flows.get(key).map(|flow| &flow.state)
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
        let Treatment { underlay, mode, .. } = &self.options.treatment;
        format!("{}: frame {}, {from:?}, {underlay}, {mode}", self.doing, self.frames)
    }
}

/// BPF_PROG_RUN stands its frames on the loopback device of the calling thread's namespace.
fn loopback_is_up() -> bool {
    const IFF_UP: u32 = 1;
    let flags = fs::read_to_string("/sys/class/net/lo/flags").expect("the loopback device");
    let flags = u32::from_str_radix(flags.trim().trim_start_matches("0x"), 16).expect("a number");
    flags & IFF_UP != 0
}

/// Only a SYN without ACK makes a flow, and none that the peer signs.
fn opens(from: Direction, parsed: &Parsed) -> bool {
    let is_syn = parsed.segment.flags & (SYN | ACK) == SYN;
    is_syn && (from == Direction::FromGuest || !parsed.is_signed())
}

fn key(frame: &[u8], at: &Layout, from: Direction) -> Key {
    let [sender, receiver] = at.addresses(frame);
    let vlan = (at.vlan != 0).then_some(at.vlan);
    match from {
        Direction::FromGuest => (sender, receiver, vlan),
        Direction::ToGuest => (receiver, sender, vlan),
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
