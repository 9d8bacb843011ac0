//! Keeping a thread on one CPU.

use std::{io, mem};

/// Keeps the calling thread on one CPU. Fails where there is no such CPU.
pub fn pin_to_cpu(cpu: usize) -> io::Result<()> {
    // SAFETY: an all-zero cpu_set_t is an empty set.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: `set` is valid; CPU_SET ignores what lies beyond it.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: `set` is valid and of the size given; 0 is the calling thread.
    match unsafe { libc::sched_setaffinity(0, mem::size_of_val(&set), &set) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
