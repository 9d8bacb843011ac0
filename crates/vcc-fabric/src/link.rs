//! One direction of a link: a queue, a transmitter of a given rate, a delay.

use super::Window;
use super::frame;
use super::memory::Memory;
use super::occupancy::Occupancy;
use super::queue::{Arrival, Queue, QueueSpec, Verdict};
use super::topology::LinkSpec;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Counted within the window only.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkCounters {
    pub packets: u64,
    pub bytes: u64,
    pub marks: u64,
    /// Early drops by the queue discipline.
    pub drops_early: u64,
    /// Drops of a full queue.
    pub drops_full: u64,
    /// Drops for lack of room in the switch's shared memory.
    pub drops_shared: u64,
    /// Losses of any kind of ECN-capable frames (ECT or CE).
    pub drops_ect: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LinkReport {
    pub name: String,
    pub rate_bps: u64,
    #[serde(flatten)]
    pub counters: LinkCounters,
    /// Time-weighted over the window.
    pub queue_mean_bytes: f64,
    pub queue_max_bytes: u64,
    /// Samples of the queue from the start of the window: (microseconds, bytes).
    #[serde(skip)]
    pub queue_series: Vec<(u64, u64)>,
}

pub(super) struct Link {
    spec: LinkSpec,
    queue: Box<dyn Queue>,
    /// When the transmitter will have sent all accepted frames.
    busy_until_ns: u64,
    /// Frames that wait for the transmitter: when each will start, and its length.
    waiting: VecDeque<(u64, u64)>,
    backlog_bytes: u64,
    /// Accepted frames in order, until they have arrived at the far end.
    accepted: VecDeque<Vec<u8>>,
    window: Window,
    counters: LinkCounters,
    occupancy: Occupancy,
}

impl Link {
    pub fn new(spec: LinkSpec, seed: u64, queue_every_us: Option<u64>) -> Result<Self, String> {
        Ok(Self {
            queue: spec.queue.build(spec.rate_bps, seed)?,
            spec,
            busy_until_ns: 0,
            waiting: VecDeque::new(),
            backlog_bytes: 0,
            accepted: VecDeque::new(),
            window: Window::NEVER,
            counters: LinkCounters::default(),
            occupancy: Occupancy::new(queue_every_us),
        })
    }

    pub fn set_window(&mut self, window: Window) {
        self.window = window;
        self.occupancy.set_window(window);
    }

    /// Enqueues a frame. Returns its arrival time at the far end, or the frame if it is dropped.
    /// Queued frames take up `memory`, if that is limited.
    pub fn offer(
        &mut self,
        now_ns: u64,
        mut frame: Vec<u8>,
        memory: Option<&mut Memory>,
    ) -> Result<u64, Vec<u8>> {
        self.start_waiting(now_ns);
        let frame_bytes = frame.len() as u64;
        let is_idle = self.waiting.is_empty() && self.busy_until_ns <= now_ns;
        let arrival = Arrival {
            now_ns,
            frame_bytes,
            backlog_bytes: self.backlog_bytes,
            idle_since_ns: is_idle.then_some(self.busy_until_ns),
            ecn_capable: frame::is_ecn_capable(&frame),
        };
        let start_ns = self.busy_until_ns.max(now_ns);
        let mut verdict = self.queue.admit(&arrival);
        if let Some(memory) = memory.filter(|_| start_ns > now_ns && verdict.is_admitted()) {
            if !memory.take(&arrival, start_ns) {
                verdict = Verdict::DropShared;
            }
        }
        if self.window.contains(now_ns) {
            self.counters.note(verdict, &arrival);
        }
        match verdict {
            Verdict::DropEarly | Verdict::DropFull | Verdict::DropShared => return Err(frame),
            Verdict::Mark => frame::mark_ce(&mut frame),
            Verdict::Accept => {}
        }
        self.busy_until_ns = start_ns + frame_bytes * 8 * 1_000_000_000 / self.spec.rate_bps;
        if start_ns > now_ns {
            self.waiting.push_back((start_ns, frame_bytes));
            self.backlog_bytes += frame_bytes;
            self.occupancy.change(now_ns, self.backlog_bytes);
        }
        self.accepted.push_back(frame);
        Ok(self.busy_until_ns + self.spec.delay_ns)
    }

    /// The oldest frame on its way has arrived.
    pub fn arrive(&mut self) -> Vec<u8> {
        self.accepted.pop_front().expect("an arrival has been announced for each accepted frame")
    }

    pub fn report(&mut self) -> LinkReport {
        self.start_waiting(self.window.end_ns);
        self.occupancy.finish();
        LinkReport {
            name: self.spec.name.clone(),
            rate_bps: self.spec.rate_bps,
            counters: self.counters.clone(),
            queue_mean_bytes: self.occupancy.mean_bytes(),
            queue_max_bytes: self.occupancy.max_bytes(),
            queue_series: self.occupancy.take_series(),
        }
    }

    fn start_waiting(&mut self, now_ns: u64) {
        while let Some(&(start_ns, bytes)) = self.waiting.front() {
            if start_ns > now_ns {
                break;
            }
            self.waiting.pop_front();
            self.backlog_bytes -= bytes;
            self.occupancy.change(start_ns, self.backlog_bytes);
        }
    }
}

impl LinkCounters {
    fn note(&mut self, verdict: Verdict, arrival: &Arrival) {
        match verdict {
            Verdict::Accept | Verdict::Mark => {
                self.packets += 1;
                self.bytes += arrival.frame_bytes;
                self.marks += u64::from(verdict == Verdict::Mark);
                return;
            }
            Verdict::DropEarly => self.drops_early += 1,
            Verdict::DropFull => self.drops_full += 1,
            Verdict::DropShared => self.drops_shared += 1,
        }
        self.drops_ect += u64::from(arrival.ecn_capable);
    }

    pub fn drops(&self) -> u64 {
        self.drops_early + self.drops_full + self.drops_shared
    }
}
