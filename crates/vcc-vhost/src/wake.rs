//! A timer that wakes the worker.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

const NS_PER_S: u64 = 1_000_000_000;

/// Readable from a time of CLOCK_MONOTONIC on, until it is set anew.
pub(crate) struct Timer {
    fd: OwnedFd,
    due_ns: Option<u64>,
}

impl Timer {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = libc::TFD_NONBLOCK | libc::TFD_CLOEXEC;
        // SAFETY: the call takes no pointers.
        let fd = owned(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) })?;
        Ok(Timer { fd, due_ns: None })
    }

    /// None: never. A time that has passed is due at once.
    pub(crate) fn set(&mut self, due_ns: Option<u64>) -> io::Result<()> {
        if due_ns == self.due_ns {
            return Ok(());
        }
        let ns = due_ns.map_or(0, |ns| ns.max(1));
        let at = libc::timespec {
            tv_sec: (ns / NS_PER_S) as libc::time_t,
            tv_nsec: (ns % NS_PER_S) as libc::c_long,
        };
        let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let new = libc::itimerspec { it_interval: zero, it_value: at };
        let absolute = libc::TFD_TIMER_ABSTIME;
        // SAFETY: the call reads an itimerspec, which `new` is, and writes no old one.
        let status = unsafe {
            libc::timerfd_settime(self.fd.as_raw_fd(), absolute, &new, std::ptr::null_mut())
        };
        if status < 0 {
            return Err(io::Error::last_os_error());
        }
        self.due_ns = due_ns;
        Ok(())
    }
}

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

fn owned(fd: RawFd) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
