//! Round trips without a reduction: a delay-based congestion control keeps its queue at a short,
//! steady length.

use std::collections::VecDeque;

use crate::median::median;
use crate::rounds::Round;

/// Number of round trips remembered.
const ROUNDS_MAX: usize = 256;
/// Round trips needed to call a flight steady: Reno would grow by as many segments meanwhile (RFC
/// 5681, 3.1), CUBIC by at least half as many (RFC 9438, 4.3).
const ROUNDS_MIN: usize = 64;

/// The last round trips since the last reduction, and the smallest RTT of all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Steady {
    rounds: VecDeque<Round>,
    base_rtt_us: u32,
}

/// Medians over round trips.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    pub rounds: usize,
    pub flight_segs: f64,
    /// The part of its flight that is queued (Brakmo and Peterson's `diff`, SIGCOMM 1994).
    pub queue_segs: f64,
    /// Upper bound of queued segments that are bursts, and not a standing queue.
    pub burst_segs: f64,
    /// Smallest over largest flight: near 0 if the connection is application-limited.
    pub busy: f64,
    /// Change from the first to the second half of the time.
    pub drift_segs: f64,
}

impl Steady {
    pub fn note(&mut self, round: &Round) {
        if round.rtt_us == 0 {
            return;
        }
        if self.base_rtt_us == 0 || round.rtt_us < self.base_rtt_us {
            self.base_rtt_us = round.rtt_us;
        }
        if self.rounds.len() == ROUNDS_MAX {
            self.rounds.pop_front();
        }
        self.rounds.push_back(*round);
    }

    pub fn reduced(&mut self) {
        self.rounds.clear();
    }

    /// None until there are enough round trips.
    pub fn kept(&self) -> Option<Kept> {
        let count = self.rounds.len();
        if count < ROUNDS_MIN {
            return None;
        }
        let over = |value: &dyn Fn(&Round) -> f64| median(self.rounds.iter().map(value));
        let flight = |round: &Round| round.peak_segs;
        let half = |skip: usize| median(self.rounds.iter().skip(skip).take(count / 2).map(flight));
        Some(Kept {
            rounds: count,
            flight_segs: over(&flight),
            queue_segs: over(&|round| self.queue_segs(round)),
            burst_segs: over(&|round| round.burst_segs),
            busy: over(&|round| round.least_segs / round.peak_segs),
            drift_segs: half(count - count / 2) - half(0),
        })
    }

    fn queue_segs(&self, round: &Round) -> f64 {
        round.peak_segs * (1.0 - f64::from(self.base_rtt_us) / f64::from(round.rtt_us))
    }
}
