//! Locks that end with the process that holds them: flock(2) on directories, because other files
//! cannot be created in the BPF file system.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::bpffs::HOME;
use crate::{Error, Result, bpffs};

/// Held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    directory: File,
}

/// A process that a thread is just starting has the descriptor until it runs its program, and would hold the
/// lock for so long if the descriptor was only closed.
impl Drop for Lock {
    fn drop(&mut self) {
        // SAFETY: the call takes no pointers, and the descriptor is open.
        let status = unsafe { libc::flock(self.directory.as_raw_fd(), libc::LOCK_UN) };
        debug_assert_eq!(status, 0, "unlocked: {}", io::Error::last_os_error());
    }
}

impl Lock {
    /// Waits until the lock is free, but not forever: its holder may be stopped. Creates the
    /// directory, but not its parents.
    pub fn wait_for(path: &Path) -> io::Result<Self> {
        // Work under a lock may take as long as the verifier needs for the programs.
        Self::wait_up_to(path, Duration::from_secs(20))
    }

    fn wait_up_to(path: &Path, patience: Duration) -> io::Result<Self> {
        const LOOK: Duration = Duration::from_millis(5);
        let until = Instant::now() + patience;
        while Instant::now() < until {
            if let Some(lock) = Self::take(path)? {
                return Ok(lock);
            }
            thread::sleep(LOOK);
        }
        Err(io::Error::other(format!(
            "another process has held it for {} s: find it with `lslocks`; end it, or try again",
            patience.as_secs()
        )))
    }

    /// None if another process holds it.
    pub(crate) fn take(path: &Path) -> io::Result<Option<Self>> {
        match fs::create_dir(path) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
            _ => {}
        }
        let directory = File::open(path)?;
        // SAFETY: the call takes no pointers, and the descriptor is open.
        if unsafe { libc::flock(directory.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
            return Ok(Some(Self { directory }));
        }
        match io::Error::last_os_error() {
            e if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
            e => Err(e),
        }
    }
}

/// Held by the one process at a time that changes what is pinned.
pub(crate) fn pins() -> Result<Lock> {
    bpffs::require_home()?;
    Lock::wait_for(Path::new(HOME)).map_err(|e| Error::system(format!("lock {HOME}"), e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_ends_although_a_child_has_its_descriptor() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("lock");
        let lock = Lock::take(&path).expect("a directory").expect("it is free");
        let copy = lock.directory.try_clone().expect("as after fork(2)");
        drop(lock);
        assert!(Lock::take(&path).expect("a directory").is_some(), "it is free");
        drop(copy);
    }

    #[test]
    fn waiting_for_a_lock_ends() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("lock");
        let wait = || Lock::wait_up_to(&path, Duration::from_millis(20));
        let first = wait().expect("it is free");
        let refused = wait().expect_err("it is taken");
        assert!(refused.to_string().contains("`lslocks`"), "{refused}");
        drop(first);
        wait().expect("it is free again");
    }
}
