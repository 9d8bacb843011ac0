//! Expedited grace periods of RCU while ports are attached and detached.
//!
//! Attaching to a TCX hook waits for a grace period with RTNL held, and so do detaching and the end
//! of a device: some 20 ms for each hook, in which no device of the host can be changed. The kernel
//! expedites the grace periods of its other changes of devices (synchronize_net()), but not TCX's;
//! /sys/kernel/rcu_expedited expedites all. With /sys/kernel/rcu_normal, as on real-time kernels,
//! the kernel ignores that.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::bpffs::HOME;
use crate::lock::Lock;

const EXPEDITED: &str = "/sys/kernel/rcu_expedited";
const NORMAL: &str = "/sys/kernel/rcu_normal";

/// Grace periods are expedited as long as there is one, if the host lets us: see [`obstacle`].
#[derive(Debug)]
pub struct Expedited {
    _held: Option<Held>,
}

impl Expedited {
    /// Does nothing where another process expedites them already.
    pub fn begin() -> Self {
        let held = Held::begin(&Path::new(HOME).join("expedited"), Path::new(EXPEDITED));
        Self { _held: held.ok().flatten() }
    }
}

/// Why attaching takes tens of milliseconds a port; None if it does not.
pub fn obstacle() -> Option<String> {
    if let Ok("1") = fs::read_to_string(NORMAL).as_deref().map(str::trim_end) {
        return Some(format!("{NORMAL} is 1"));
    }
    let value = match fs::read_to_string(EXPEDITED) {
        Ok(value) => value,
        Err(error) => return Some(format!("{EXPEDITED}: {error}")),
    };
    // Writing what is there changes nothing, and tells whether writing is possible.
    let error = fs::write(EXPEDITED, value).err()?;
    Some(format!("{EXPEDITED}: {error}"))
}

#[derive(Debug)]
struct Held {
    place: PathBuf,
    switch: PathBuf,
    is_set: bool,
    _lock: Lock,
}

impl Held {
    /// None if grace periods are expedited already.
    fn begin(place: &Path, switch: &Path) -> io::Result<Option<Self>> {
        let Some(lock) = Lock::take(place)? else { return Ok(None) };
        let held = Self { place: place.into(), switch: switch.into(), is_set: false, _lock: lock };
        held.set()
    }

    /// None if the operator has set the switch.
    fn set(mut self) -> io::Result<Option<Self>> {
        // A mark was left by a process that was killed, as was the switch's position.
        if !self.mark().exists() {
            if fs::read_to_string(&self.switch)?.trim_end() != "0" {
                return Ok(None);
            }
            fs::create_dir(self.mark())?;
        }
        fs::write(&self.switch, "1")?;
        self.is_set = true;
        Ok(Some(self))
    }

    /// Says that the switch's position is not the operator's.
    fn mark(&self) -> PathBuf {
        self.place.join("by-vcc")
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // The mark stays if this fails, and the next process tries again.
        if self.is_set && fs::write(&self.switch, "0").is_err() {
            return;
        }
        // Whoever waits for the lock of a directory that is removed cannot leave a mark in it, and
        // expedites nothing.
        let _ = fs::remove_dir(self.mark());
        let _ = fs::remove_dir(&self.place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Host {
        directory: tempfile::TempDir,
    }

    impl Host {
        fn with(value: &str) -> Self {
            let directory = tempfile::tempdir().expect("a directory");
            fs::write(directory.path().join("switch"), value).expect("it is writable");
            Self { directory }
        }

        fn begin(&self) -> io::Result<Option<Held>> {
            Held::begin(&self.directory.path().join("expedited"), &self.switch())
        }

        fn switch(&self) -> std::path::PathBuf {
            self.directory.path().join("switch")
        }

        fn left(&self) -> usize {
            fs::read_dir(self.directory.path()).expect("a directory").count()
        }

        fn value(&self) -> String {
            fs::read_to_string(self.switch()).expect("the switch").trim_end().to_owned()
        }
    }

    #[test]
    fn grace_periods_are_expedited_for_a_while() {
        let host = Host::with("0\n");
        let held = host.begin().expect("the switch can be set").expect("nobody else has set it");
        assert_eq!(host.value(), "1");
        assert!(host.begin().expect("a look").is_none(), "the first one ends it");
        drop(held);
        assert_eq!(host.value(), "0");
        assert_eq!(host.left(), 1, "nothing but the switch is left");
    }

    #[test]
    fn an_operators_own_setting_stays() {
        let host = Host::with("1\n");
        assert!(host.begin().expect("a look").is_none());
        assert_eq!(host.value(), "1");
        assert_eq!(host.left(), 1);
    }

    #[test]
    fn what_a_killed_process_has_set_is_reset() {
        let host = Host::with("0\n");
        let killed = host.begin().expect("the switch can be set").expect("nobody has set it");
        let lock = Lock::take(&host.directory.path().join("expedited")).expect("a look");
        assert!(lock.is_none(), "the lock is held");
        // The kernel releases a lock of a process that ends; nothing else happens.
        let mut killed = std::mem::ManuallyDrop::new(killed);
        let elsewhere = host.directory.path().join("elsewhere");
        killed._lock = Lock::take(&elsewhere).expect("a lock").expect("it is free");
        drop(host.begin().expect("the switch can be set").expect("nobody holds the lock"));
        assert_eq!(host.value(), "0");
    }

    #[test]
    fn a_switch_that_cannot_be_set_leaves_no_mark() {
        let host = Host::with("0\n");
        fs::remove_file(host.switch()).expect("it is there");
        assert_eq!(host.begin().expect_err("no switch").kind(), io::ErrorKind::NotFound);
        fs::write(host.switch(), "1\n").expect("it is writable");
        assert!(host.begin().expect("a look").is_none(), "a mark is left");
    }
}
