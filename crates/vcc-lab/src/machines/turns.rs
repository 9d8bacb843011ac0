//! Turns of virtual machines on one core, by the kernel's round robin (SCHED_RR): a guest that wakes
//! waits behind all that have work, and one that sleeps gives up the rest of its turn.

use crate::base::error::{Doing, Result};
use crate::base::system::check;
use std::fs::{self, File};
use std::io;
use std::mem;
use std::os::fd::AsRawFd;
use vcc_qemu::Vm;

/// The core of the guests' CPUs, and that of all else: the peer, and the host with its devices.
const GUESTS_CPU: usize = 0;
const HOST_CPU: usize = 1;
/// The length of a turn, of the whole machine.
const SLICE: &str = "/proc/sys/kernel/sched_rr_timeslice_ms";

/// While this lives, turns have the length that was asked for.
pub struct Slices {
    before: String,
    /// Locked, so that there is but one.
    _file: File,
}

impl Slices {
    pub fn set(slice_ms: u32) -> Result<Self> {
        let file = File::open(SLICE).doing(|| format!("open {SLICE}"))?;
        // SAFETY: takes no pointers, and the descriptor is open.
        check(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }).doing(
            || format!("lock {SLICE}, which another run with virtual machines may have set"),
        )?;
        let before = fs::read_to_string(SLICE).doing(|| format!("read {SLICE}"))?;
        fs::write(SLICE, slice_ms.to_string()).doing(|| format!("write {slice_ms} to {SLICE}"))?;
        Ok(Self { before, _file: file })
    }
}

impl Drop for Slices {
    fn drop(&mut self) {
        // It could be written before, and nobody is left to receive an error.
        let _ = fs::write(SLICE, self.before.trim());
    }
}

/// From now on, the CPUs of a virtual machine take turns with others, and the rest of it is a part of
/// the host.
pub fn join(machine: &Vm) -> Result<()> {
    let doing = || "place the threads of a virtual machine".to_owned();
    for (thread, is_cpu) in machine.threads().doing(doing)? {
        place(thread, if is_cpu { Part::Guest } else { Part::Monitor }).doing(doing)?;
    }
    Ok(())
}

/// Parts that answer the guest come first, by how near they are to it: an answer that comes after the
/// guest has gone to sleep waits for its next turn.
#[derive(Clone, Copy)]
pub enum Part {
    Guest,
    /// Others' traffic.
    Crowd,
    Peer,
    Link,
    /// Of the guest's card.
    Card,
    /// QEMU, but for its guest's CPU: its event loop raises the card's interrupts.
    Monitor,
}

/// Gives a thread the core of its part; 0 is the calling one.
pub fn place(thread: libc::pid_t, part: Part) -> io::Result<()> {
    let (cpu, sched_priority) = match part {
        Part::Guest => (GUESTS_CPU, 1),
        Part::Crowd => (HOST_CPU, 4),
        Part::Peer => (HOST_CPU, 5),
        Part::Link => (HOST_CPU, 6),
        Part::Card => (HOST_CPU, 7),
        Part::Monitor => (HOST_CPU, 8),
    };
    // SAFETY: an all-zero cpu_set_t is an empty set.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: `set` is valid.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: `set` is valid and of the size given.
    check(unsafe { libc::sched_setaffinity(thread, size_of_val(&set), &set) })?;
    let parameters = libc::sched_param { sched_priority };
    // SAFETY: `parameters` is valid.
    check(unsafe { libc::sched_setscheduler(thread, libc::SCHED_RR, &parameters) }).map(drop)
}
