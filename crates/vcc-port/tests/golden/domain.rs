//! The driver domain next to the datapath: for the same frames at the same times, its output must
//! be equal, also with partial checksums.

use std::collections::BTreeSet;

use vcc_domain::{Checksum, Frame, Out, Port, Verdict};
use vcc_engine::{Delays, FlowKey, FlowState};
use vcc_frames::checksum;
use vcc_port::{AttachOptions, Counters, RunOutput, counters};

use crate::direction::Direction::{self, FromGuest, ToGuest};
use crate::direction::{DROP, Key, NEXT};
use crate::layout::Layout;
use crate::state;
use vcc_frames::hex;

/// Two ports of the driver domain: one gets frames with full checksums, the other the same frames
/// with partial checksums.
pub struct Domain {
    full: Port,
    partial: Port,
    /// The current time.
    now_us: u64,
}

/// The driver domain's output for a frame.
pub struct Output {
    pub verdict: Verdict,
    pub frame: Vec<u8>,
    pub also: Vec<Frame>,
}

impl Domain {
    pub fn new(options: &AttachOptions) -> Self {
        let port = Port::new(options.params, options.max_flows as usize);
        Domain { full: port.clone(), partial: port, now_us: 0 }
    }

    /// Sends a frame at a time of the kernel's clock. `place` is the step of the test, for
    /// messages.
    pub fn send(
        &mut self,
        place: &str,
        from: Direction,
        now_us: u64,
        frame: &[u8],
        gso_size: u32,
    ) -> Output {
        self.now_us = now_us;
        let gso_size = u16::try_from(gso_size).expect("a segment's size");
        let came = Frame { bytes: frame.to_vec(), gso_size, checksum: Checksum::Full };
        let out = pass(&mut self.full, from, now_us, came.clone());
        let partial = pass(&mut self.partial, from, now_us, partial(&came));
        let mut frames = vec![(&out.frame, &partial.frame)];
        frames.extend(out.also.iter().zip(&partial.also));
        for (full, partial) in frames {
            // A frame that came with a wrong checksum leaves with one, which may look like a
            // partial one.
            if let Some(completed) = complete(partial, gso_size).filter(|_| is_right(&came)) {
                assert_eq!(hex(&completed), hex(&full.bytes), "{place}, completed");
            }
            assert_eq!(partial.gso_size, full.gso_size, "{place}");
        }
        assert_eq!((out.verdict, out.also.len()), (partial.verdict, partial.also.len()), "{place}");
        Output { verdict: out.verdict, frame: out.frame.bytes, also: out.also }
    }

    /// Runs the timers that are due by then. Returns the frames for the guest.
    fn advance(&mut self, now_us: u64) -> Vec<Frame> {
        self.now_us = now_us;
        let advance = |port: &mut Port| {
            let mut out = Out::default();
            port.advance(now_us * 1000, &mut out);
            assert_eq!(out.to_fabric, [], "nothing is held");
            out.to_guest
        };
        let [to_guest, same] = [&mut self.full, &mut self.partial].map(advance);
        assert_eq!(to_guest, same, "whoever made it, its checksums are full");
        to_guest
    }

    /// Runs the timers as a live port would: at the times that the port asks for, up to this one,
    /// or later if a frame was sent meanwhile.
    pub fn advance_until(&mut self, now_us: u64) -> Vec<Frame> {
        let mut to_guest = Vec::new();
        while let Some(next_us) = self.next_deadline_us().filter(|next_us| *next_us <= now_us) {
            to_guest.extend(self.advance(next_us.max(self.now_us)));
        }
        to_guest
    }

    fn next_deadline_us(&self) -> Option<u64> {
        assert_eq!(self.full.next_deadline_ns(), self.partial.next_deadline_ns());
        self.full.next_deadline_ns().map(|ns| ns.div_ceil(1000))
    }

    pub fn state(&self, key: &Key) -> Option<&FlowState> {
        self.full.flow(&flow_key(key))
    }

    /// The port's state of the flow equals the kernel's, byte for byte.
    pub fn assert_state(&self, place: &str, key: &Key, expected: Option<&FlowState>) {
        let key = flow_key(key);
        for port in [&self.full, &self.partial] {
            match (port.flow(&key), expected) {
                (Some(flow), Some(expected)) if state::bytes(flow) != state::bytes(expected) => {
                    panic!("{place}, in the domain: {}", state::differences(expected, flow));
                }
                (flow, expected) => {
                    assert_eq!(flow.is_some(), expected.is_some(), "{place}: {key}")
                }
            }
        }
    }

    /// The flows, the counters and the numbers of delays are equal.
    pub fn assert_all(&self, flows: &BTreeSet<Key>, counted: &Counters, delays: &Delays) {
        let expected: BTreeSet<FlowKey> = flows.iter().map(flow_key).collect();
        for port in [&self.full, &self.partial] {
            assert!(port.flows().map(|(key, _)| *key).eq(expected.iter().copied()), "flows");
        }
        self.assert_counted(counted);
        for port in [&self.full, &self.partial] {
            // Their lengths are only as exact as the time of a segment that the state depends on.
            let counts = |of: &Delays| (of.fabric().count(), of.guest().count());
            assert_eq!(counts(port.delays()), counts(delays), "delays in the domain");
        }
    }

    /// The counters are equal, except that of lost reports: BPF_PROG_RUN loses some FACKs.
    pub fn assert_counted(&self, counted: &Counters) {
        for port in [&self.full, &self.partial] {
            for ((counter, kernel), (_, here)) in counted.iter().zip(port.counters().iter()) {
                if counter != counters::REPORT_LOST {
                    assert_eq!(here, kernel, "counter {} in the domain", counter.name);
                }
            }
        }
    }
}

impl Output {
    /// The output equals the kernel's. The FACK of a frame without a length is not sent, only built
    /// by a test.
    pub fn assert_equals(&self, place: &str, kernel: &RunOutput, fack: Option<&[u8]>) {
        let verdict = if self.verdict == Verdict::Pass { NEXT } else { DROP };
        assert_eq!(verdict, kernel.return_value, "{place}, in the domain");
        assert_eq!(hex(&self.frame), hex(&kernel.frame), "{place}, in the domain");
        let has_length = Layout::parse(&kernel.frame, 0).is_ok();
        let fack = fack.filter(|_| has_length).map(hex);
        let also: Vec<String> = self.also.iter().map(|frame| hex(&frame.bytes)).collect();
        assert_eq!(also, Vec::from_iter(fack), "{place}: FACKs of the domain");
    }
}

struct Passed {
    verdict: Verdict,
    frame: Frame,
    also: Vec<Frame>,
}

fn pass(port: &mut Port, from: Direction, now_us: u64, mut frame: Frame) -> Passed {
    let (now_ns, mut out) = (now_us * 1000, Out::default());
    let verdict = match from {
        FromGuest => port.from_guest(now_ns, &mut frame, &mut out),
        ToGuest => port.to_guest(now_ns, &mut frame, &mut out).0,
    };
    assert_eq!(out.to_guest, []);
    Passed { verdict, frame, also: out.to_fabric }
}

fn flow_key(&(guest, peer, vlan): &Key) -> FlowKey {
    FlowKey::new(guest, peer, vlan)
}

/// Whether the frame is a whole TCP segment with right checksums.
fn is_right(frame: &Frame) -> bool {
    let at = Layout::parse(&frame.bytes, frame.gso_size.into());
    at.is_ok_and(|at| checksum::verify(&frame.bytes, &at))
}

fn partial(frame: &Frame) -> Frame {
    let mut partial = Frame { checksum: Checksum::Partial, ..frame.clone() };
    if let Ok(at) = Layout::parse(&frame.bytes, frame.gso_size.into()) {
        checksum::make_partial(&mut partial.bytes, &at);
    }
    partial
}

/// Completes the partial checksum of a TCP segment. `gso_size` is that of the original frame,
/// because a super-segment is still parsed as one.
fn complete(frame: &Frame, gso_size: u16) -> Option<Vec<u8>> {
    let mut whole = frame.bytes.clone();
    let at = Layout::parse(&whole, gso_size.into()).ok()?;
    checksum::complete(&mut whole, &at);
    Some(whole)
}
