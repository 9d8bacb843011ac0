//! The one process that keeps this host's ports under a policy.

use std::path::Path;

use crate::lock::Lock;
use crate::{Error, Result, bpffs};

const GOVERNOR: &str = "/sys/fs/bpf/vcc/governor";

/// A process is the governor until it drops this.
pub struct Governor {
    _lock: Lock,
}

impl Governor {
    /// None if another process is the governor.
    pub fn become_it() -> Result<Option<Self>> {
        bpffs::require_home()?;
        let lock = Lock::take(Path::new(GOVERNOR));
        let lock = lock.map_err(|e| Error::system(format!("lock {GOVERNOR}"), e))?;
        Ok(lock.map(|lock| Self { _lock: lock }))
    }

    /// Whether a process is the governor.
    pub(crate) fn is_there() -> Result<bool> {
        Ok(Path::new(GOVERNOR).exists() && Self::become_it()?.is_none())
    }
}
