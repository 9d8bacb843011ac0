//! How most tests attach, and the clock of the datapath.

use vcc_engine::Params;
use vcc_port::AttachOptions;

/// The defaults, but with a small table, because it is read after every frame.
pub fn usual() -> AttachOptions {
    usually(Params::default())
}

/// Just too short for the time of ticks (engine/clock.h): each segment has its own, by which the
/// engine that runs next to the kernel finds it.
const RTO_MIN_MOST_US: u32 = 159_999;

/// The options of [`usual`] with other parameters.
pub fn usually(mut params: Params) -> AttachOptions {
    params.0.rto_min_us = params.0.rto_min_us.min(RTO_MIN_MOST_US);
    AttachOptions { params, max_flows: 1024, ..AttachOptions::default() }
}

/// The clock of bpf_ktime_get_ns.
pub fn now_us() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills in a live timespec.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    assert_eq!(status, 0);
    now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1_000
}
