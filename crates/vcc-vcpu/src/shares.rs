//! Shares of an interval.

use std::time::Duration;

use crate::text::Times;

/// Below this share of the time, a CPU neither runs nor waits enough to be the reason for anything.
const IDLE: f64 = 0.01;
/// Of the time for which it was runnable. One of two that compute on a CPU waits for half of it.
const WAITS: f64 = 0.25;
const BUSY: f64 = 0.5;

/// What a guest's CPU did in an interval, as shares of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    /// It had work, and the host ran something else.
    pub waiting: f64,
    pub running: f64,
    pub idle: f64,
}

/// What a guest's CPU lacks: what would let it answer sooner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// It does not run for a good part of the time in which it has work.
    Turns,
    /// It runs, and has more to do than it gets done.
    Speed,
    /// Neither: it sleeps.
    Nothing,
}

impl Shares {
    pub(crate) fn between(before: Times, after: Times, interval: Duration) -> Self {
        if after.waits_since(&before) {
            return Self { waiting: 1.0, running: 0.0, idle: 0.0 };
        }
        let interval_ns = interval.as_nanos().max(1) as f64;
        let share = |from: u64, to: u64| to.saturating_sub(from) as f64 / interval_ns;
        // The kernel adds a wait once it is over: one that began before the interval is in it.
        let waiting = share(before.waiting_ns, after.waiting_ns).min(1.0);
        let running = share(before.running_ns, after.running_ns).min(1.0 - waiting);
        Self { waiting, running, idle: 1.0 - waiting - running }
    }

    pub fn runnable(&self) -> f64 {
        self.waiting + self.running
    }

    pub fn want(&self) -> Want {
        if self.waiting >= IDLE && self.waiting >= WAITS * self.runnable() {
            Want::Turns
        } else if self.running >= BUSY {
            Want::Speed
        } else {
            Want::Nothing
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_a_second(running_ms: u64, waiting_ms: u64) -> Shares {
        let ns = |ms: u64| 5_000_000_000 + ms * 1_000_000;
        let of = |running_ns, waiting_ns| Times { running_ns, waiting_ns, is_runnable: false };
        let (before, after) = (of(ns(0), ns(0)), of(ns(running_ms), ns(waiting_ms)));
        Shares::between(before, after, Duration::from_secs(1))
    }

    #[test]
    fn waiting_is_distinguished_from_work_and_from_sleep() {
        for (running_ms, waiting_ms, want) in [
            // A third of a CPU, and computing.
            (333, 667, Want::Turns),
            // Woken now and then, behind others each time.
            (5, 600, Want::Turns),
            (5, 60, Want::Turns),
            (980, 0, Want::Speed),
            (800, 200, Want::Speed),
            (100, 5, Want::Nothing),
            (5, 5, Want::Nothing),
            (0, 0, Want::Nothing),
        ] {
            assert_eq!(
                after_a_second(running_ms, waiting_ms).want(),
                want,
                "{running_ms} {waiting_ms}"
            );
        }
    }

    #[test]
    fn a_wait_that_is_not_over_is_one() {
        let of = |running_ns, is_runnable| Times { running_ns, waiting_ns: 70, is_runnable };
        for (before, after, waiting) in [
            (of(5, true), of(5, true), 1.0),
            // It sleeps; it was woken or went to sleep meanwhile; it runs.
            (of(5, false), of(5, false), 0.0),
            (of(5, false), of(5, true), 0.0),
            (of(5, true), of(5, false), 0.0),
            (of(5, true), of(6, true), 0.0),
        ] {
            let shares = Shares::between(before, after, Duration::from_millis(500));
            assert_eq!(shares.waiting, waiting, "{before:?} {after:?}");
        }
    }

    #[test]
    fn shares_are_of_the_whole_interval() {
        let shares = after_a_second(250, 500);
        assert_eq!((shares.waiting, shares.running, shares.idle), (0.5, 0.25, 0.25));
        // A wait of three seconds has just ended; the clock of the reader stood still; a new thread has
        // the number of one that ended.
        for (shares, expected) in [
            (after_a_second(1, 3000), (1.0, 0.0, 0.0)),
            (Shares::between(Times::default(), Times::default(), Duration::ZERO), (0.0, 0.0, 1.0)),
            (
                Shares::between(
                    Times { running_ns: u64::MAX, waiting_ns: u64::MAX, is_runnable: true },
                    Times::default(),
                    Duration::from_secs(1),
                ),
                (0.0, 0.0, 1.0),
            ),
        ] {
            assert_eq!((shares.waiting, shares.running, shares.idle), expected);
        }
    }
}
