//! Locks that end with the process that holds them: directories, for the BPF file system has no other
//! files to lock.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use crate::{Error, Result, bpffs};

/// Held until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _directory: File,
}

impl Lock {
    /// Waits for whoever has it. Makes the directory, though not the one that it is in.
    pub(crate) fn wait_for(path: &Path) -> io::Result<Self> {
        Self::by(path, libc::LOCK_EX)
    }

    /// None if another has it.
    pub(crate) fn take(path: &Path) -> io::Result<Option<Self>> {
        match Self::by(path, libc::LOCK_EX | libc::LOCK_NB) {
            Ok(lock) => Ok(Some(lock)),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn by(path: &Path, operation: libc::c_int) -> io::Result<Self> {
        match fs::create_dir(path) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
            _ => {}
        }
        let directory = File::open(path)?;
        // SAFETY: the call takes no pointers, and the descriptor is open.
        if unsafe { libc::flock(directory.as_raw_fd(), operation) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { _directory: directory })
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
        bpffs::require()?;
        let path = Path::new(GOVERNOR);
        let lock = fs::create_dir_all(path).and_then(|()| Lock::take(path));
        let lock = lock.map_err(|e| Error::system(format!("lock {GOVERNOR}"), e))?;
        Ok(lock.map(|lock| Self { _lock: lock }))
    }
}
