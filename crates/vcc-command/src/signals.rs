//! Signals to a command in the foreground.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Those that end a command.
const ENDING: [libc::c_int; 2] = [libc::SIGTERM, libc::SIGINT];

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
        let set = blocked(&ENDING);
        // SAFETY: the call reads the set.
        let fd = unsafe { libc::signalfd(-1, &set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and nobody else's.
        Ok(Signals { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// For the calling thread: a program that it executes would inherit the block. It may be called
    /// between fork and exec.
    pub fn unblock() {
        masked(libc::SIG_UNBLOCK, &ENDING);
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
    masked(libc::SIG_BLOCK, signals)
}

fn masked(how: libc::c_int, signals: &[libc::c_int]) -> libc::sigset_t {
    // SAFETY: the set is written by sigemptyset before it is read; the calls keep no pointer.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in signals {
            libc::sigaddset(&mut set, *signal);
        }
        libc::pthread_sigmask(how, &set, std::ptr::null_mut());
        set
    }
}
