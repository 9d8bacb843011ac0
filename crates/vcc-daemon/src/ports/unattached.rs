//! Devices that could not be made ports, or are ports elsewhere.

use std::fmt;
use std::time::{Duration, Instant};

use vcc_port::links::Link;

/// A device that should be a port and is not, and the reason.
pub(crate) struct Unattached {
    pub link: Link,
    pub reason: String,
    pub why: Why,
    /// None: it was detached by hand, and only a reload attaches it again.
    pub(super) again: Option<Retry>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// Attaching failed, or somebody detached it.
    Problem,
    /// A process of `vcc domain` serves it.
    IsServed,
    /// It is the host's own, and the policy has only a pattern that matches its name.
    IsOfHost,
}

/// When to attach again after a failure: no event announces that its cause is gone.
#[derive(Clone, Copy)]
pub(super) struct Retry {
    at: Instant,
    pause: Duration,
}

impl Retry {
    const FIRST: Duration = Duration::from_secs(1);
    const LAST: Duration = Duration::from_secs(60);

    /// After a failure, which may have followed others: exponential backoff.
    pub(super) fn after(before: Option<Retry>) -> Self {
        let pause = before.map_or(Self::FIRST, |before| (before.pause * 2).min(Self::LAST));
        Self { at: Instant::now() + pause, pause }
    }

    pub(super) fn is_due(self) -> bool {
        self.at <= Instant::now()
    }
}

impl fmt::Display for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} s", self.pause.as_secs())
    }
}
