//! The signals that end a command in the foreground.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Readable once SIGTERM or SIGINT has come, which then do nothing else.
pub struct Signals(OwnedFd);

impl Signals {
    pub fn block() -> io::Result<Self> {
        // SAFETY: the set is written by sigemptyset before it is read, and the calls keep no pointer to it.
        let fd = unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            for signal in [libc::SIGTERM, libc::SIGINT] {
                libc::sigaddset(&mut set, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
            libc::signalfd(-1, &set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it is new, and nobody else has it.
        Ok(Signals(unsafe { OwnedFd::from_raw_fd(fd) }))
    }
}

impl AsRawFd for Signals {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
