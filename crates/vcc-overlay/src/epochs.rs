//! Congestion epochs: a guest's reduction after a loss or a mark, and its growth until the next.

use crate::observation::{Observation, is_after};
use crate::rounds::Round;

/// Cause of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Loss,
    /// It answered ECE with CWR (RFC 3168, 6.1.2).
    Mark,
}

/// The time from one reduction to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Epoch {
    pub cause: Cause,
    /// Windows, measured as flights: before the reduction, after it, and at the next reduction.
    pub before_segs: f64,
    pub after_segs: f64,
    pub end_segs: f64,
    /// Complete round trips of growth.
    pub rounds: u32,
    pub seconds: f64,
    /// Fraction of the growth in the first half of its time; 0.5 is linear.
    pub early_share: f64,
}

impl Epoch {
    /// The fraction of the window that the reduction kept.
    pub fn kept(&self) -> f64 {
        self.after_segs / self.before_segs
    }

    pub fn gain_segs(&self) -> f64 {
        self.end_segs - self.after_segs
    }

    /// Without the last round trip, which the next reduction cut short.
    pub fn growing_rounds(&self) -> f64 {
        f64::from(self.rounds) + 0.5
    }

    /// Growth per round trip.
    pub fn growth_segs(&self) -> f64 {
        self.gain_segs() / self.growing_rounds()
    }
}

/// Number of epochs remembered.
pub(crate) const EPOCHS_MAX: usize = 32;
/// Number of windows remembered per epoch; beyond that, every other one is dropped.
const POINTS_MAX: usize = 64;
/// A longer repair was a timeout or several repairs; slow start follows.
const REPAIR_ROUNDS_MAX: u32 = 4;

#[derive(Clone, Debug)]
enum State {
    /// Before the first reduction, or after one that could not be followed.
    Lost,
    /// Until the flight at the reduction is acknowledged (RFC 6582, 3.2: recover).
    Reducing {
        cause: Cause,
        recover: u32,
        before_segs: f64,
        rounds: u32,
    },
    /// The first complete round trip with the new window.
    Settling {
        cause: Cause,
        before_segs: f64,
    },
    Growing(Growth),
}

#[derive(Clone, Debug)]
struct Growth {
    cause: Cause,
    before_segs: f64,
    after_segs: f64,
    since_us: u64,
    rounds: u32,
    every: u32,
    points: Vec<(u64, f64)>,
}

#[derive(Clone, Debug)]
pub(crate) struct Epochs {
    state: State,
    last: Option<Observation>,
    /// The last two round trips that ended outside of a reduction.
    peaks_segs: [f64; 2],
    done: Vec<Epoch>,
    /// Reductions, whether or not they could be followed.
    pub losses: u32,
    pub marks: u32,
    /// Losses whose repair took too long to measure the reduction.
    pub timeouts: u32,
}

impl Default for Epochs {
    fn default() -> Self {
        Self {
            state: State::Lost,
            last: None,
            peaks_segs: [0.0; 2],
            done: Vec::new(),
            losses: 0,
            marks: 0,
            timeouts: 0,
        }
    }
}

impl Epochs {
    /// `round` is the round trip that ended with this observation, `peak_segs` the largest flight of the
    /// current one. Returns true if a reduction has completed, so that round trips must restart
    /// here: the current one still contains the old window.
    pub fn note(&mut self, observed: &Observation, round: Option<&Round>, peak_segs: f64) -> bool {
        let Some(last) = self.last.replace(*observed) else { return false };
        let cause = if observed.retransmissions > last.retransmissions {
            Some(Cause::Loss)
        } else if observed.cwrs > last.cwrs {
            Some(Cause::Mark)
        } else {
            None
        };
        let reducing = matches!(self.state, State::Reducing { .. });
        if let (Some(cause), false) = (cause, reducing) {
            self.begin(cause, observed, peak_segs);
        }
        let was_reducing = matches!(self.state, State::Reducing { .. });
        self.advance(observed, round);
        if let Some(round) = round.filter(|_| !matches!(self.state, State::Reducing { .. })) {
            self.peaks_segs = [self.peaks_segs[1], round.peak_segs];
        }
        was_reducing && matches!(self.state, State::Settling { .. })
    }

    /// Completed epochs, oldest first.
    pub fn done(&self) -> &[Epoch] {
        &self.done
    }

    fn begin(&mut self, cause: Cause, observed: &Observation, peak_segs: f64) {
        match cause {
            Cause::Loss => self.losses += 1,
            Cause::Mark => self.marks += 1,
        }
        let before_segs = self.peaks_segs[1].max(peak_segs);
        if let State::Growing(growth) = &self.state {
            if let Some(epoch) = growth.end(observed.at_us, before_segs) {
                if self.done.len() == EPOCHS_MAX {
                    self.done.remove(0);
                }
                self.done.push(epoch);
            }
        }
        self.state = State::Reducing { cause, recover: observed.snd_nxt, before_segs, rounds: 0 };
    }

    fn advance(&mut self, observed: &Observation, round: Option<&Round>) {
        match &mut self.state {
            State::Lost => {}
            State::Reducing { cause, recover, before_segs, rounds } => {
                *rounds += u32::from(round.is_some());
                if !is_after(*recover, observed.snd_una) {
                    self.state = State::Settling { cause: *cause, before_segs: *before_segs };
                    self.peaks_segs = [0.0; 2];
                } else if *rounds > REPAIR_ROUNDS_MAX {
                    self.timeouts += 1;
                    self.state = State::Lost;
                }
            }
            State::Settling { cause, before_segs } => {
                let Some(round) = round else { return };
                self.state = State::Growing(Growth {
                    cause: *cause,
                    before_segs: *before_segs,
                    after_segs: round.peak_segs,
                    since_us: round.at_us,
                    rounds: 0,
                    every: 1,
                    points: Vec::new(),
                });
            }
            State::Growing(growth) => {
                if let Some(round) = round {
                    growth.note(round);
                }
            }
        }
    }
}

impl Growth {
    fn note(&mut self, round: &Round) {
        self.rounds += 1;
        if self.rounds % self.every != 0 {
            return;
        }
        if self.points.len() == POINTS_MAX {
            let mut keep = false;
            self.points.retain(|_| {
                keep = !keep;
                !keep
            });
            self.every *= 2;
        }
        self.points.push((round.at_us, round.peak_segs));
    }

    fn end(&self, at_us: u64, end_segs: f64) -> Option<Epoch> {
        let length_us = at_us.saturating_sub(self.since_us);
        if self.before_segs <= 0.0 || self.after_segs <= 0.0 {
            return None;
        }
        let half_us = self.since_us + length_us / 2;
        let half = self.points.iter().min_by_key(|(at_us, _)| at_us.abs_diff(half_us));
        let gain_segs = end_segs - self.after_segs;
        let early_share = half.map_or(0.5, |(_, segs)| (segs - self.after_segs) / gain_segs);
        Some(Epoch {
            cause: self.cause,
            before_segs: self.before_segs,
            after_segs: self.after_segs,
            end_segs,
            rounds: self.rounds,
            seconds: length_us as f64 / 1e6,
            early_share: if gain_segs > 0.0 { early_share } else { 0.5 },
        })
    }
}
