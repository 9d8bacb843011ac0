//! Locks that end with the process that holds them: directories, for the BPF file system has no other
//! files to lock.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::{Error, Result, bpffs};

/// Held until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _directory: File,
}

impl Lock {
    /// Waits for whoever has it, but not for good: it may have been stopped. Makes the directory, though
    /// not the one that it is in.
    pub(crate) fn wait_for(path: &Path) -> io::Result<Self> {
        // Work under a lock takes as long as the verifier takes for a port's programs.
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
            "another process has had it for {} s: `lslocks` tells which; end it, or try again",
            patience.as_secs()
        )))
    }

    /// None if another has it.
    pub(crate) fn take(path: &Path) -> io::Result<Option<Self>> {
        match fs::create_dir(path) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
            _ => {}
        }
        let directory = File::open(path)?;
        // SAFETY: the call takes no pointers, and the descriptor is open.
        if unsafe { libc::flock(directory.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
            return Ok(Some(Self { _directory: directory }));
        }
        match io::Error::last_os_error() {
            e if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
            e => Err(e),
        }
    }
}

const GOVERNOR: &str = "/sys/fs/bpf/vcc/governor";

/// Held by the one process that keeps this host's ports under a policy, until it is dropped.
pub struct Governor {
    _lock: Lock,
}

impl Governor {
    /// None: another process is it.
    pub fn become_it() -> Result<Option<Self>> {
        bpffs::require_home()?;
        let lock = Lock::take(Path::new(GOVERNOR));
        let lock = lock.map_err(|e| Error::system(format!("lock {GOVERNOR}"), e))?;
        Ok(lock.map(|lock| Self { _lock: lock }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_a_lock_does_not_wait_for_good() {
        let path = std::env::temp_dir().join(format!("vcc-lock-{}", std::process::id()));
        let wait = || Lock::wait_up_to(&path, Duration::from_millis(20));
        let first = wait().expect("nobody has it");
        let refused = wait().expect_err("it is taken");
        assert!(refused.to_string().contains("`lslocks` tells which"), "{refused}");
        drop(first);
        wait().expect("nobody has it any more");
        fs::remove_dir(&path).expect("removed");
    }
}
