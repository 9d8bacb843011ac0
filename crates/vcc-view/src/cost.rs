//! What the ports themselves cost.

use std::fs;
use std::time::{Duration, Instant};

use vcc_net::peer::credentials;
use vcc_port::{RunTime, RunTimeByDirection, RunTimes};

use crate::domain;
use crate::source::Source;
use crate::watch::Watch;

/// Between two reads.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// None if it is not known how many frames there were.
    pub from_guest: Option<Work>,
    pub to_guest: Option<Work>,
    /// The share of one CPU.
    pub cpu: f64,
}

/// What was done with the frames of a direction. A super-segment is one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    pub frames_per_s: f64,
    /// The mean of a frame; None without frames.
    pub frame_ns: Option<f64>,
    /// The part of them that the fast path took; None without frames, or where it is not counted.
    pub fast_part: Option<f64>,
}

impl Cost {
    /// Of a port in the kernel; None if other programs are in the place of those before, or if nobody had the
    /// kernel count meanwhile.
    pub fn of_programs(
        before: &RunTimeByDirection,
        now: &RunTimeByDirection,
        passed: Duration,
    ) -> Option<Self> {
        let seconds = passed.as_secs_f64();
        let from = since(before.from_guest, now.from_guest)?;
        let to = since(before.to_guest, now.to_guest)?;
        if seconds <= 0.0 || (from.runs + to.runs == 0 && !RunTimes::are_counted()) {
            return None;
        }
        let work = |time: RunTime| Some(Work::new(time.runs, time.ns as f64, seconds));
        let cpu = (from.ns + to.ns) as f64 / 1e9 / seconds;
        Some(Self { from_guest: work(from), to_guest: work(to), cpu })
    }

    /// Of all frames of both directions; None if that is not known.
    pub fn work(&self) -> Option<Work> {
        let frames_per_s = self.from_guest?.frames_per_s + self.to_guest?.frames_per_s;
        let frame_ns = (frames_per_s > 0.0).then(|| self.cpu * 1e9 / frames_per_s);
        Some(Work { frames_per_s, frame_ns, fast_part: None })
    }
}

/// What ports have cost when it began.
pub struct CostWatch {
    at: Instant,
    /// Of each port; None if it cannot be read.
    begun: Vec<Option<Reading>>,
}

/// What was counted so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// In the kernel, where the programs of each direction are counted.
    Kernel {
        times: RunTimeByDirection,
        /// Frames that the fast path has handed on; None if other devices' are among them.
        handed_on: Option<[u64; 2]>,
    },
    /// Of a process, all of whose work is for one port.
    Process { cpu: Duration, frames: Option<[u64; 2]> },
}

/// While this exists, the kernel counts the run time of all programs on the machine, which costs each run
/// two reads of the clock. It takes CAP_SYS_ADMIN.
pub struct Counting {
    _counting: Option<RunTimes>,
}

impl Counting {
    pub fn begin() -> Self {
        Self { _counting: RunTimes::count().ok() }
    }
}

impl Watch for CostWatch {
    type Seen = Cost;

    fn begin(ports: &[Source]) -> Self {
        Self { at: Instant::now(), begun: ports.iter().map(Reading::from_source).collect() }
    }

    fn end(&self, ports: &[Source]) -> Vec<Option<Cost>> {
        let passed = self.at.elapsed();
        let cost = |(before, port): (&Option<Reading>, _)| {
            (*before)?.until(Reading::from_source(port)?, passed)
        };
        self.begun.iter().zip(ports).map(cost).collect()
    }
}

impl Reading {
    fn from_source(port: &Source) -> Option<Self> {
        match port {
            // Devices of one guest have programs of their own.
            Source::Kernel(port) => {
                let times = port.run_time_by_direction().ok()?;
                let is_whole = port.others().is_empty();
                let handed_on = is_whole.then(|| port.handed_on().ok()).flatten();
                Some(Self::Kernel { times, handed_on })
            }
            Source::Domain(of) => {
                let stream = domain::connect(&of.name).ok()?;
                let process = credentials(&stream)?.pid;
                // In front of a device, only TCP takes the detour through it.
                let is_card = port.socket().is_some_and(|socket| !socket.is_empty());
                let frames = is_card.then(|| frames(&of.name)).flatten();
                Some(Self::Process { cpu: cpu_time(process)?, frames })
            }
        }
    }

    /// None if something has been reset in between.
    fn until(self, later: Self, passed: Duration) -> Option<Cost> {
        let seconds = passed.as_secs_f64();
        if seconds <= 0.0 {
            return None;
        }
        match (self, later) {
            (
                Self::Kernel { times, handed_on },
                Self::Kernel { times: times_now, handed_on: on_now },
            ) => {
                let cost = Cost::of_programs(&times, &times_now, passed)?;
                let slow = |direction: usize| on_now?[direction].checked_sub(handed_on?[direction]);
                let with_fast_part = |work: Work, before: RunTime, now: RunTime, direction| {
                    let frames = now.runs - before.runs;
                    let fast_part = slow(direction).and_then(|slow| fast_part(frames, slow));
                    Work { fast_part, ..work }
                };
                let from_guest = cost
                    .from_guest
                    .map(|work| with_fast_part(work, times.from_guest, times_now.from_guest, 0));
                let to_guest = cost
                    .to_guest
                    .map(|work| with_fast_part(work, times.to_guest, times_now.to_guest, 1));
                Some(Cost { from_guest, to_guest, ..cost })
            }
            (Self::Process { cpu, frames }, Self::Process { cpu: now, frames: frames_now }) => {
                let ns = now.checked_sub(cpu)?.as_nanos() as f64;
                let cost = Cost { cpu: ns / 1e9 / seconds, ..Cost::default() };
                let (Some(before), Some(after)) = (frames, frames_now) else { return Some(cost) };
                let from = after[0].checked_sub(before[0])?;
                let to = after[1].checked_sub(before[1])?;
                // Which of its time was for which direction is not known.
                let mean_ns = ns / (from + to).max(1) as f64;
                let work = |frames| Some(Work::new(frames, mean_ns * frames as f64, seconds));
                Some(Cost { from_guest: work(from), to_guest: work(to), ..cost })
            }
            _ => None,
        }
    }
}

fn since(before: RunTime, now: RunTime) -> Option<RunTime> {
    Some(RunTime { runs: now.runs.checked_sub(before.runs)?, ns: now.ns.checked_sub(before.ns)? })
}

/// The two counts are not read at the same time, so a few frames may be in one of them alone.
fn fast_part(frames: u64, slow: u64) -> Option<f64> {
    (frames > 0).then(|| frames.saturating_sub(slow) as f64 / frames as f64)
}

impl Work {
    fn new(frames: u64, ns: f64, seconds: f64) -> Self {
        let frame_ns = (frames > 0).then(|| ns / frames as f64);
        Self { frames_per_s: frames as f64 / seconds, frame_ns, fast_part: None }
    }
}

/// Of all threads of a process.
fn cpu_time(process: libc::pid_t) -> Option<Duration> {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: the pointer is that of a clockid_t that outlives the call.
    if unsafe { libc::clock_getcpuclockid(process, &mut clock) } != 0 {
        return None;
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: likewise, of a timespec.
    if unsafe { libc::clock_gettime(clock, &mut time) } != 0 {
        return None;
    }
    Some(Duration::new(u64::try_from(time.tv_sec).ok()?, time.tv_nsec as u32))
}

/// That a tap of this namespace has taken from its process, which come from the guest, and given to it.
fn frames(tap: &str) -> Option<[u64; 2]> {
    frames_in(&fs::read_to_string("/proc/thread-self/net/dev").ok()?, tap)
}

/// The second and the tenth number of the device's line: packets received, and transmitted.
fn frames_in(devices: &str, tap: &str) -> Option<[u64; 2]> {
    let numbers =
        devices.lines().find_map(|line| line.trim().strip_prefix(tap)?.strip_prefix(':'))?;
    let number = |at| numbers.split_whitespace().nth(at)?.parse().ok();
    Some([number(1)?, number(9)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn programs_cost_what_the_kernel_has_counted() {
        let times = |runs, ns| RunTimeByDirection {
            from_guest: RunTime { runs, ns },
            to_guest: RunTime { runs: 2 * runs, ns: 2 * ns },
        };
        let reading = |runs, ns| Reading::Kernel {
            times: times(runs, ns),
            handed_on: Some([runs / 10, runs / 10]),
        };
        let cost = reading(100, 1_000).until(reading(1_100, 201_000), 2 * SECOND).expect("a cost");
        let from_guest = Work { frames_per_s: 500.0, frame_ns: Some(200.0), fast_part: Some(0.9) };
        assert_eq!(cost.from_guest, Some(from_guest));
        let to_guest = Work { frames_per_s: 1_000.0, fast_part: Some(0.95), ..from_guest };
        assert_eq!(cost.to_guest, Some(to_guest));
        assert!((cost.cpu - 600e3 / 1e9 / 2.0).abs() < 1e-12, "{cost:?}");
        let all = cost.work().expect("frames");
        assert!((all.frame_ns.expect("a mean") - 200.0).abs() < 1e-6, "{all:?}");
        let idle = reading(100, 1_000).until(reading(100, 1_000), SECOND);
        let nothing =
            Cost { from_guest: Some(Work::default()), to_guest: Some(Work::default()), cpu: 0.0 };
        assert_eq!(idle, RunTimes::are_counted().then_some(nothing));
        // Another program is in its place.
        assert_eq!(reading(100, 1_000).until(reading(1, 1), SECOND), None);
    }

    #[test]
    fn a_process_costs_the_mean_of_its_frames() {
        let reading = |ms, frames| Reading::Process { cpu: Duration::from_millis(ms), frames };
        let (before, after) = (reading(0, Some([0, 0])), reading(20, Some([1_000, 3_000])));
        let cost = before.until(after, SECOND).expect("a cost");
        assert!((cost.cpu - 0.02).abs() < 1e-12, "{cost:?}");
        let work = cost.to_guest.expect("frames");
        assert_eq!((work.frames_per_s, work.frame_ns), (3_000.0, Some(5_000.0)));
        let unknown = before.until(reading(20, None), SECOND).expect("a cost");
        assert_eq!((unknown.from_guest, unknown.to_guest), (None, None));
    }

    #[test]
    fn frames_are_those_of_the_tap() {
        let devices = "Inter-|   Receive   |  Transmit\n face |bytes packets\n\
            \x20 tap1: 100 1 0 0 0 0 0 0 200 2 0 0 0 0 0 0\n tap10: 100 3 0 0 0 0 0 0 200 4 0 0 0 0 0 0\n";
        assert_eq!(frames_in(devices, "tap1"), Some([1, 2]));
        assert_eq!(frames_in(devices, "tap10"), Some([3, 4]));
        assert_eq!(frames_in(devices, "tap"), None);
        assert!(cpu_time(std::process::id() as libc::pid_t).is_some());
    }
}
