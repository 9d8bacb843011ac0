//! How a run tells how far it is.

use std::collections::BTreeMap;

#[derive(Debug)]
pub enum Event<'a> {
    /// Comes several times a second.
    Tick {
        case: &'a str,
        run: u32,
        runs: u32,
        /// Until the whole experiment is done, if no run has to be repeated.
        left_s: f64,
    },
    /// A run is over.
    Done {
        case: &'a str,
        run: u32,
        runs: u32,
        valid: bool,
        /// Why it does not count.
        reasons: &'a [String],
        metrics: &'a BTreeMap<String, f64>,
    },
}

pub trait Progress {
    fn note(&mut self, event: &Event);
}

/// For those who do not want to know.
impl Progress for () {
    fn note(&mut self, _: &Event) {}
}
