//! What the connections of a port, of a rule, or of all have together.

use std::ops::AddAssign;

use vcc_engine::FlowState;

use crate::rates::{Growth, Rates};

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    pub flows: u64,
    /// The windows shown to guests.
    pub window_bytes: u64,
    /// Since the daemon started; None without a daemon.
    pub growth: Option<Growth>,
    /// None before the second read.
    pub rates: Option<Rates>,
}

impl Sums {
    pub fn count(&mut self, state: &FlowState) {
        self.flows += 1;
        self.window_bytes += u64::from(state.window_shown_bytes().unwrap_or(0));
    }
}

impl AddAssign for Sums {
    fn add_assign(&mut self, other: Self) {
        self.flows += other.flows;
        self.window_bytes += other.window_bytes;
        self.growth = added(self.growth, other.growth);
        self.rates = added(self.rates, other.rates);
    }
}

fn added<T: AddAssign>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(mut a), Some(b)) => {
            a += b;
            Some(a)
        }
        (a, b) => a.or(b),
    }
}
