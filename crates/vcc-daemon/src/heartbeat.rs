//! What the service manager is told: that all is well, what is being done, that we are alive.

use std::time::{Duration, Instant};

use sd_notify::NotifyState;
use vcc_policy::text::printable_line;

pub(crate) struct Heartbeat {
    every: Option<Duration>,
    last: Instant,
}

impl Heartbeat {
    pub(crate) fn new() -> Self {
        // Half of what it waits, as sd_watchdog_enabled(3) wants it.
        let every = sd_notify::watchdog_enabled().map(|limit| limit / 2);
        Self { every, last: Instant::now() }
    }

    /// To be called often by the thread whose standstill would be noticed.
    pub(crate) fn beat(&mut self) {
        if self.every.is_some_and(|every| self.last.elapsed() >= every.min(LOOK_AGAIN)) {
            tell(&[NotifyState::Watchdog]);
            self.last = Instant::now();
        }
    }

    pub(crate) fn ready(&self, status: &str) {
        // A line each is told, and another would be another thing that is told.
        tell(&[NotifyState::Ready, NotifyState::Status(&printable_line(status))]);
    }

    pub(crate) fn reloading(&self) {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => tell(&[NotifyState::Reloading, now]),
            // Who is told RELOADING without a time takes it for a failure.
            Err(_) => tell(&[NotifyState::Status("reloading")]),
        }
    }

    pub(crate) fn ending(&self) {
        tell(&[NotifyState::Stopping]);
    }
}

/// More often than it must be: beats come between steps, and a step takes its time.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// A service manager that does not listen is no reason to end: it will act by itself.
fn tell(state: &[NotifyState<'_>]) {
    let _ = sd_notify::notify(state);
}
