//! Descriptors that wake the worker: a timer, signals.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

const NS_PER_S: u64 = 1_000_000_000;

/// ns of CLOCK_MONOTONIC.
pub(crate) fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes a timespec, which `now` is.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    assert_eq!(status, 0, "CLOCK_MONOTONIC is always there");
    now.tv_sec as u64 * NS_PER_S + now.tv_nsec as u64
}

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

/// Readable once SIGTERM or SIGINT has come, which then do nothing else.
pub struct Signals {
    fd: OwnedFd,
}

impl Signals {
    /// For the calling thread and those that it starts.
    ///
    /// # Errors
    /// The process has no descriptor left.
    pub fn block() -> io::Result<Self> {
        let set = blocked(&[libc::SIGTERM, libc::SIGINT]);
        // SAFETY: the call reads the set.
        let fd = unsafe { libc::signalfd(-1, &set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC) };
        Ok(Signals { fd: owned(fd)? })
    }
}

impl AsRawFd for Signals {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// SIGHUP, which does nothing else.
pub struct Hangups {
    set: libc::sigset_t,
}

impl Hangups {
    /// For the calling thread and those that it starts.
    pub fn block() -> Self {
        Hangups { set: blocked(&[libc::SIGHUP]) }
    }

    /// Waits for one.
    pub fn wait(&self) {
        let mut number = 0;
        // SAFETY: the call reads the set and writes a number. It fails only for an invalid set.
        unsafe { libc::sigwait(&self.set, &mut number) };
    }
}

fn blocked(signals: &[libc::c_int]) -> libc::sigset_t {
    // SAFETY: the set is written by sigemptyset before it is read; the calls keep no pointer.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in signals {
            libc::sigaddset(&mut set, *signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        set
    }
}

fn owned(fd: RawFd) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
