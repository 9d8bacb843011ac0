//! Progress of a run.

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
        /// None where time is real.
        virtual_time: Option<VirtualTime>,
    },
    /// A run is over.
    Done {
        case: &'a str,
        run: u32,
        runs: u32,
        valid: bool,
        /// It is not valid, and another run takes its place.
        is_repeated: bool,
        /// Why it is not valid.
        reasons: &'a [String],
        metrics: &'a BTreeMap<String, f64>,
    },
}

/// Progress of a run in virtual time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VirtualTime {
    pub now_s: f64,
    pub end_s: f64,
    /// Wall-clock time since the run began.
    pub wall_s: f64,
    /// Current wall-clock seconds per virtual second.
    pub wall_s_each: f64,
}

impl VirtualTime {
    /// Wall-clock seconds to go.
    pub fn left_s(&self) -> f64 {
        (self.end_s - self.now_s).max(0.0) * self.wall_s_each
    }
}

pub trait Progress {
    fn note(&mut self, event: &Event);
}

/// Ignores all events.
impl Progress for () {
    fn note(&mut self, _: &Event) {}
}
