//! Watches one connection.

use crate::dips::Dips;
use crate::epochs::Epochs;
use crate::filling::Filling;
use crate::guess::Guess;
use crate::judge::{Seen, judge};
use crate::observation::Observation;
use crate::rounds::Rounds;
use crate::steady::Steady;

/// State of one connection, at most some 20 kB however long it lasts.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    rounds: Rounds,
    epochs: Epochs,
    steady: Steady,
    dips: Dips,
    filling: Filling,
    reductions: u32,
}

impl Watch {
    /// Observations must be in order of time.
    pub fn note(&mut self, observed: &Observation) {
        let round = self.rounds.note(observed);
        if self.epochs.note(observed, round.as_ref(), self.rounds.peak_segs()) {
            self.rounds.restart(observed);
        }
        let reductions = self.epochs.losses + self.epochs.marks;
        if reductions != self.reductions {
            self.reductions = reductions;
            self.steady.reduced();
            self.dips.reduced();
        }
        if let Some(round) = round {
            self.steady.note(&round);
            self.dips.note(&round);
            self.filling.note(&round);
        }
    }

    pub fn guess(&self) -> Guess {
        judge(&Seen {
            epochs: &self.epochs,
            steady: &self.steady,
            dips: &self.dips,
            filling: &self.filling,
        })
    }
}
