//! The clock of timers and deadlines.

const NS_PER_S: u64 = 1_000_000_000;

/// ns of CLOCK_MONOTONIC.
#[inline]
pub fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes a timespec, which `now` is.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    assert_eq!(status, 0, "CLOCK_MONOTONIC is always there");
    now.tv_sec as u64 * NS_PER_S + now.tv_nsec as u64
}
