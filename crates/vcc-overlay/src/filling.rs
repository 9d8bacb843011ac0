//! Counts how often a guest fills the window that it is shown.

use crate::rounds::Round;

/// A guest with TSO defers up to a third of its window until the next acknowledgement (Linux:
/// tcp_tso_should_defer), but rarely throughout a round trip.
const FULL: f64 = 0.85;
const ROUNDS_MIN: u32 = 30;
/// A window below this fraction of the previous one has fallen.
const FALLEN: f64 = 0.8;

#[derive(Clone, Debug, Default)]
pub(crate) struct Filling {
    rounds: u32,
    full: u32,
    last_shown_bytes: u32,
    /// How often the window fell and was filled again. Receivers do not shrink the window (RFC
    /// 9293, 3.8.6); vcc's windows fall with its underlay's.
    pub followed: u32,
}

impl Filling {
    pub fn note(&mut self, round: &Round) {
        self.rounds += 1;
        if round.filled < FULL {
            return;
        }
        self.full += 1;
        let fell = f64::from(round.shown_bytes) < FALLEN * f64::from(self.last_shown_bytes);
        self.followed += u32::from(fell);
        self.last_shown_bytes = round.shown_bytes;
    }

    /// Fraction of all round trips, once there are enough.
    pub fn share(&self) -> Option<f64> {
        (self.rounds >= ROUNDS_MIN).then(|| f64::from(self.full) / f64::from(self.rounds))
    }
}
