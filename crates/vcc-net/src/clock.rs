//! The clock of timers and deadlines, and that of work.

const NS_PER_S: u64 = 1_000_000_000;

/// ns of CLOCK_MONOTONIC.
#[inline]
pub fn now_ns() -> u64 {
    read_ns(libc::CLOCK_MONOTONIC)
}

/// ns of CPU that the calling thread has used.
pub fn thread_cpu_ns() -> u64 {
    read_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

#[inline]
fn read_ns(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes a timespec, which `now` is.
    let status = unsafe { libc::clock_gettime(clock, &mut now) };
    assert_eq!(status, 0, "both clocks are always there");
    now.tv_sec as u64 * NS_PER_S + now.tv_nsec as u64
}
