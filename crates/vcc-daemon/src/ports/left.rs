//! Devices that could not be made ports, or are ports elsewhere.

use std::time::{Duration, Instant};

use vcc_port::links::Link;

/// A device that should be a port and is not, and the reason.
pub(crate) struct Left {
    pub link: Link,
    pub reason: String,
    /// It is the port of a process of `vcc domain`, which is no problem.
    pub is_served: bool,
    /// None: it was detached by hand, and only a reload attaches it again.
    pub(super) again: Option<Again>,
}

/// When to attach again after a failure: no event tells that its cause has gone.
#[derive(Clone, Copy)]
pub(super) struct Again {
    at: Instant,
    pause: Duration,
}

impl Again {
    const FIRST: Duration = Duration::from_secs(1);
    const LAST: Duration = Duration::from_secs(60);

    /// After a failure, which may have followed others: exponential backoff.
    pub(super) fn after(before: Option<Again>) -> Self {
        let pause = before.map_or(Self::FIRST, |before| (before.pause * 2).min(Self::LAST));
        Self { at: Instant::now() + pause, pause }
    }

    pub(super) fn is_due(self) -> bool {
        self.at <= Instant::now()
    }
}
