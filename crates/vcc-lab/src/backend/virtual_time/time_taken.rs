//! Wall-clock time of a run, by phase.

use std::time::Instant;
use vcc_fabric::Window;

/// Wall-clock seconds.
#[derive(Debug, Clone, Copy)]
pub struct TimeTaken {
    /// Until all guests have booted.
    pub boot_s: f64,
    /// Then until the window of measurement: connections, warm-up.
    pub begin_s: f64,
    pub measured_s: f64,
    /// Then until all guests have ended.
    pub end_s: f64,
}

/// Reads the wall clock when virtual time reaches the bounds of the window.
pub(super) struct Stopwatch {
    window: Window,
    begun: Option<Instant>,
    ended: Option<Instant>,
}

impl Stopwatch {
    pub fn new(window: Window) -> Self {
        Self { window, begun: None, ended: None }
    }

    pub fn note(&mut self, now_ns: u64) {
        if now_ns > self.window.start_ns && self.begun.is_none() {
            self.begun = Some(Instant::now());
        }
        if now_ns > self.window.end_ns && self.ended.is_none() {
            self.ended = Some(Instant::now());
        }
    }

    /// The times of a run that began at `begin` and is over now. A phase it did not reach took no
    /// time.
    pub fn time_taken(&self, begin: Instant, booted: Instant) -> TimeTaken {
        let over = Instant::now();
        let ended = self.ended.unwrap_or(over);
        let begun = self.begun.unwrap_or(ended);
        let between_s = |from: Instant, to: Instant| to.duration_since(from).as_secs_f64();
        TimeTaken {
            boot_s: between_s(begin, booted),
            begin_s: between_s(booted, begun),
            measured_s: between_s(begun, ended),
            end_s: between_s(ended, over),
        }
    }
}
