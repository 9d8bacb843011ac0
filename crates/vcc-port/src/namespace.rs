//! Network namespaces without names, which end with whoever holds them.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::thread;

/// A network namespace. It lives as long as this process holds it, and ends with it however it ends.
pub struct Netns {
    file: File,
}

impl Netns {
    pub fn create() -> io::Result<Self> {
        on_own_thread(|| {
            unshare(libc::CLONE_NEWNET)?;
            Self::current()
        })
    }

    /// The calling thread's.
    pub fn current() -> io::Result<Self> {
        Ok(Self { file: File::open("/proc/thread-self/ns/net")? })
    }

    /// Runs `work` inside; the calling thread stays where it is. Sockets that `work` makes stay
    /// inside for good, and commands that it starts run inside.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        on_own_thread(|| {
            self.enter()?;
            Ok(work())
        })
    }

    /// Moves the calling thread there, for good.
    fn enter(&self) -> io::Result<()> {
        // SAFETY: the call takes no pointers, and the descriptor is open.
        if unsafe { libc::setns(self.file.as_raw_fd(), libc::CLONE_NEWNET) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// What other programs can open while this process lives and holds the namespace.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }
}

/// Threads change their namespaces and priorities one by one: what this one changes ends with it.
pub(crate) fn on_own_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| match scope.spawn(work).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// Of the calling thread alone.
pub(crate) fn unshare(flags: libc::c_int) -> io::Result<()> {
    // SAFETY: the call takes no pointers.
    if unsafe { libc::unshare(flags) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
