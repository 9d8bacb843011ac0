//! The clock of flows' state.

use std::time::Duration;

/// CLOCK_MONOTONIC, with which the datapath stamps a flow's state.
pub fn monotonic() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to the structure that it is given; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The same in seconds, as the datapath has the time since when there is a port. Never 0.
pub(crate) fn now_s() -> u32 {
    u32::try_from(monotonic().as_secs()).unwrap_or(u32::MAX).max(1)
}
