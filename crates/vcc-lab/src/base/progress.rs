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
        /// None where time is real.
        virtual_time: Option<VirtualTime>,
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

/// How far a run in virtual time has come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VirtualTime {
    pub now_s: f64,
    pub end_s: f64,
    /// Since the run began, by the clock on the wall.
    pub wall_s: f64,
    /// Wall time that a virtual second takes at present.
    pub wall_s_each: f64,
}

impl VirtualTime {
    /// Of wall time.
    pub fn left_s(&self) -> f64 {
        (self.end_s - self.now_s).max(0.0) * self.wall_s_each
    }
}

pub trait Progress {
    fn note(&mut self, event: &Event);
}

/// For those who do not want to know.
impl Progress for () {
    fn note(&mut self, _: &Event) {}
}
