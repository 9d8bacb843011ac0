//! Devices that come and go.

use std::time::{Duration, Instant};

use vcc_port::Expedited;

/// Expedites grace periods while ports come and go: the kernel waits for them when a device is deleted,
/// too, and deletions are not announced.
pub(super) struct Churn {
    expedited: Option<Expedited>,
    last: Instant,
}

/// How long after the last change.
const LINGER: Duration = Duration::from_secs(1);

impl Churn {
    pub(super) fn begin() -> Self {
        Self { expedited: Some(Expedited::begin()), last: Instant::now() }
    }

    /// A port has come or gone.
    pub(super) fn restart(&mut self) {
        self.expedited.get_or_insert_with(Expedited::begin);
        self.last = Instant::now();
    }

    pub(super) fn expire(&mut self) {
        if self.last.elapsed() >= LINGER {
            self.expedited = None;
        }
    }
}
