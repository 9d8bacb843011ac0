//! The few system calls that the standard library does not offer.

use crate::base::error::{Doing, Error, Result};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;

pub use vcc_traffic::system::{check, now_ns};

pub fn require_root() -> Result<()> {
    // SAFETY: takes nothing, cannot fail.
    if unsafe { libc::geteuid() } == 0 { Ok(()) } else { Err(Error::NotRoot) }
}

/// Memory that programs and files in memory can still take without swapping (proc_meminfo(5)).
pub fn free_memory_bytes() -> Result<u64> {
    let path = PathBuf::from("/proc/meminfo");
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(source) => return Err(Error::Read { path, source }),
    };
    free_bytes(&text).ok_or_else(|| Error::Missing {
        what: "a line `MemAvailable` in /proc/meminfo".into(),
        remedy: "run it where the kernel's own /proc is mounted, or with --jobs 1".into(),
    })
}

fn free_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib << 10)
}

/// Gives the calling thread real-time priority. It must not spin: the kernel throttles real-time
/// threads to 95 % of each second (sched(7)).
pub fn become_realtime(priority: i32) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: `parameters` is valid; 0 is the calling thread.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) })?;
    // SAFETY: sets the timer slack of the calling thread to 1 ns.
    check(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) }).map(drop)
}

/// Keeps the process's memory resident for as long as this lives.
pub struct LockedMemory(());

impl LockedMemory {
    pub fn lock() -> io::Result<Self> {
        let flags = libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT;
        // SAFETY: no memory is passed.
        check(unsafe { libc::mlockall(flags) }).map(|_| Self(()))
    }
}

impl Drop for LockedMemory {
    fn drop(&mut self) {
        // SAFETY: no memory is passed.
        unsafe { libc::munlockall() };
    }
}

/// Readiness of many descriptors, with a timeout in nanoseconds.
pub struct Epoll {
    fd: OwnedFd,
    events: Vec<libc::epoll_event>,
}

const EVENTS: usize = 64;

impl Epoll {
    pub fn new() -> Result<Self> {
        // SAFETY: takes no pointers.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })
            .doing(|| "create an epoll instance".into())?;
        // SAFETY: the kernel just made this descriptor for us.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { fd, events: vec![libc::epoll_event { events: 0, u64: 0 }; EVENTS] })
    }

    pub fn add(&self, fd: RawFd, interest: i32, token: usize) -> Result<()> {
        let mut event = libc::epoll_event { events: interest as u32, u64: token as u64 };
        // SAFETY: `event` is valid for the call.
        let result =
            unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event) };
        check(result).map(drop).doing(|| "watch a descriptor".into())
    }

    pub fn remove(&self, fd: RawFd) -> Result<()> {
        let nothing = std::ptr::null_mut();
        // SAFETY: for this operation the kernel ignores the event, which may be null.
        let result =
            unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), libc::EPOLL_CTL_DEL, fd, nothing) };
        check(result).map(drop).doing(|| "no longer watch a descriptor".into())
    }

    /// The tokens of what is ready, after at most so long.
    pub fn wait(&mut self, timeout_ns: u64) -> Result<impl Iterator<Item = usize> + use<'_>> {
        let timeout = libc::timespec {
            tv_sec: (timeout_ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (timeout_ns % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: `events` has room for EVENTS entries, `timeout` is valid, no signal mask.
        let ready = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.fd.as_raw_fd(),
                self.events.as_mut_ptr(),
                EVENTS as libc::c_int,
                &timeout,
                std::ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        };
        let ready = match check(ready as libc::c_int) {
            Ok(ready) => ready as usize,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(error).doing(|| "wait for frames (epoll_pwait2)".into()),
        };
        Ok(self.events[..ready].iter().map(|event| event.u64 as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_memory_is_what_can_be_taken_without_swapping() {
        let meminfo = "MemTotal:       24684084 kB\nMemFree:  1 kB\nMemAvailable:     2048 kB\n";
        assert_eq!(free_bytes(meminfo), Some(2 << 20));
        assert_eq!(free_bytes("MemFree:  1 kB\n"), None);
        assert!(free_memory_bytes().unwrap() > 0);
    }
}
