//! What the kernel says of a process.

use std::fs;

/// A number in `/proc/PID/status`, such as `VmRSS`: KiB of memory that are resident now, `VmHWM`: that were
/// at most, or `Threads`.
#[track_caller]
#[must_use]
pub fn process_status(pid: u32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it has not ended");
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let value = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    value.unwrap_or_else(|| panic!("no {field} in {status}"))
}
