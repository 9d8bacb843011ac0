//! Round-trip times through the bottleneck's queue, in virtual time.
//!
//! A small frame takes the data's path, through the queue like any other, and returns on the path
//! of the ACKs. Both ends belong to the fabric, so the time includes links and queues but does not
//! depend on the machine's load. AC/DC measured a ping-pong over TCP (sockperf), which includes two
//! hosts' stacks as well and, where the queue drops, retransmission timeouts. Probes are ECT(0), so
//! that a queue that marks does not drop them.
//!
//! The host that returns a probe may send frames over the same link, and the fabric learns of them
//! after the probe arrives. The probe therefore waits until all earlier frames are known.

use super::frame;
use super::topology::ProbeEnds;
use super::{HostId, Window};
use std::collections::VecDeque;
use vcc_net::random::SplitMix64;

/// The least that Ethernet sends.
pub const PROBE_BYTES: usize = 60;
const ECT_0: u8 = 0b10;
/// Offset of the departure time: behind the IPv4 header.
const STAMP: std::ops::Range<usize> = 34..42;

/// One probe, or ping, that came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RttSample {
    /// Departure time, since the start of the window.
    pub at_us: u64,
    pub rtt_ns: u64,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProbeReport {
    pub samples: Vec<RttSample>,
    /// Dropped on their way.
    pub lost: u64,
}

pub(super) struct Probes {
    ends: ProbeEnds,
    every_ns: u64,
    random: SplitMix64,
    window: Window,
    next_ns: u64,
    /// Probes at the far end that have not left it, with their departure times, in order.
    turning: VecDeque<(u64, Vec<u8>)>,
    report: ProbeReport,
}

impl Probes {
    pub fn new(ends: ProbeEnds, every_us: u64, seed: u64) -> Self {
        Self {
            ends,
            every_ns: every_us * 1000,
            random: SplitMix64::new(seed),
            window: Window::NEVER,
            next_ns: u64::MAX,
            turning: VecDeque::new(),
            report: ProbeReport::default(),
        }
    }

    pub fn set_window(&mut self, window: Window) {
        self.window = window;
        self.next_ns = window.start_ns;
    }

    /// Departure time of the next probe.
    pub fn due_ns(&self) -> Option<u64> {
        (self.next_ns < self.window.end_ns).then_some(self.next_ns)
    }

    /// The next one, at its time. The times between them vary by half to either side, or they
    /// could fall into step with what the senders do.
    pub fn launch(&mut self, frame: &mut Vec<u8>) -> HostId {
        let ProbeEnds { near, far } = self.ends;
        frame::write_bare(frame, near, far, ECT_0, PROBE_BYTES);
        frame[STAMP].copy_from_slice(&self.next_ns.to_be_bytes());
        self.next_ns += self.random.around(self.every_ns);
        near
    }

    /// The host where probes start is used by nothing else.
    pub fn is_probe(&self, frame: &[u8]) -> bool {
        let ends = [frame::source(frame), frame::destination(frame)];
        ends.contains(&Some(self.ends.near))
    }

    /// A probe has arrived: it is back, and its buffer is free, or it is to turn round.
    pub fn arrive(&mut self, host: HostId, now_ns: u64, mut frame: Vec<u8>) -> Option<Vec<u8>> {
        let ProbeEnds { near, far } = self.ends;
        if host == far {
            frame::address(&mut frame, far, near);
            self.turning.push_back((now_ns, frame));
            return None;
        }
        let stamp = frame[STAMP].try_into().map(u64::from_be_bytes);
        let left_ns = stamp.expect("a probe has room for its stamp");
        self.report.samples.push(RttSample {
            at_us: left_ns.saturating_sub(self.window.start_ns) / 1000,
            rtt_ns: now_ns - left_ns,
        });
        Some(frame)
    }

    /// Departure time of the first probe at the far end.
    pub fn turns_ns(&self) -> Option<u64> {
        self.turning.front().map(|&(turns_ns, _)| turns_ns)
    }

    /// The first that has turned round by then: from where it goes, and when.
    pub fn turned(&mut self, by_ns: u64) -> Option<(HostId, u64, Vec<u8>)> {
        self.turns_ns().filter(|&turns_ns| turns_ns <= by_ns)?;
        let (turns_ns, frame) = self.turning.pop_front()?;
        Some((self.ends.far, turns_ns, frame))
    }

    pub fn note_loss(&mut self) {
        self.report.lost += 1;
    }

    pub fn report(&mut self) -> ProbeReport {
        std::mem::take(&mut self.report)
    }
}
