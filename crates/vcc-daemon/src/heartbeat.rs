//! Notifications to the service manager: state, status, watchdog.

use std::time::{Duration, Instant};

use sd_notify::NotifyState;
use vcc_policy::text::printable_line;

pub(crate) struct Heartbeat {
    every: Option<Duration>,
    last: Instant,
}

impl Heartbeat {
    pub(crate) fn new() -> Self {
        // Half the timeout, as sd_watchdog_enabled(3) recommends.
        let every = sd_notify::watchdog_enabled().map(|limit| limit / 2);
        Self { every, last: Instant::now() }
    }

    /// To be called often by the thread that the watchdog supervises.
    pub(crate) fn beat(&mut self) {
        if self.every.is_some_and(|every| self.last.elapsed() >= every.min(LOOK_AGAIN)) {
            notify(&[NotifyState::Watchdog]);
            self.last = Instant::now();
        }
    }

    pub(crate) fn ready(&self, status: &str) {
        // One line per assignment: a line break in the status would begin another assignment.
        notify(&[NotifyState::Ready, NotifyState::Status(&printable_line(status))]);
    }

    pub(crate) fn reloading(&self) {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => notify(&[NotifyState::Reloading, now]),
            // systemd treats RELOADING without a time as a failure.
            Err(_) => notify(&[NotifyState::Status("reloading")]),
        }
    }

    pub(crate) fn ending(&self) {
        notify(&[NotifyState::Stopping]);
    }
}

/// Beats come between steps of work, which may take long, so the watchdog is notified more often
/// than required.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Errors are ignored: without notifications, the service manager's watchdog acts.
fn notify(state: &[NotifyState<'_>]) {
    let _ = sd_notify::notify(state);
}
