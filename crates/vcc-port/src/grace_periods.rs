//! Expedited grace periods of RCU while ports are attached and detached.
//!
//! Attaching to a TCX hook waits for a grace period with RTNL held, and so do detaching and the end
//! of a device: some 20 ms for each hook, in which no device of the host can be changed. The kernel
//! expedites the grace periods of its other changes of devices (synchronize_net()), but not TCX's;
//! /sys/kernel/rcu_expedited expedites all. With /sys/kernel/rcu_normal, as on real-time kernels,
//! the kernel ignores that.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::bpffs::HOME;
use crate::lock::Lock;

const EXPEDITED: &str = "/sys/kernel/rcu_expedited";
const NORMAL: &str = "/sys/kernel/rcu_normal";

const OFF: &str = "0";
/// To the kernel, each value but 0 means the same. This one shows that vcc has set it: to any
/// process, in any namespace, even when the process that wrote it is gone.
const BY_VCC: &str = "2";

/// Grace periods are expedited as long as there is one, if the host lets us: see
/// [`Self::obstacle`].
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

    /// Why attaching takes tens of milliseconds a port; None if it does not.
    pub fn obstacle() -> Option<String> {
        if let Ok("1") = fs::read_to_string(NORMAL).as_deref().map(str::trim_end) {
            return Some(format!("{NORMAL} is 1"));
        }
        let error = OpenOptions::new().write(true).open(EXPEDITED).err()?;
        Some(format!("{EXPEDITED}: {error}"))
    }
}

#[derive(Debug)]
struct Held {
    /// A directory, for the lock on it.
    place: PathBuf,
    switch: PathBuf,
    _lock: Lock,
}

impl Held {
    /// None if grace periods are expedited already.
    fn begin(place: &Path, switch: &Path) -> io::Result<Option<Self>> {
        let Some(lock) = Lock::take(place)? else { return Ok(None) };
        // From here on, dropping it sets things right.
        let held = Self { place: place.into(), switch: switch.into(), _lock: lock };
        // With nobody there who has the lock, `BY_VCC` was left by a process that was killed.
        let is_operators = ![OFF, BY_VCC].contains(&held.value()?.as_str());
        if is_operators {
            return Ok(None);
        }
        fs::write(switch, BY_VCC)?;
        Ok(Some(held))
    }

    fn value(&self) -> io::Result<String> {
        Ok(fs::read_to_string(&self.switch)?.trim_end().to_owned())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // The next process tries again, if this fails.
        if self.value().is_ok_and(|value| value == BY_VCC) {
            let _ = fs::write(&self.switch, OFF);
        }
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
            let host = Self { directory: tempfile::tempdir().expect("a directory") };
            host.set(value);
            host
        }

        fn begin(&self) -> io::Result<Option<Held>> {
            Held::begin(&self.directory.path().join("expedited"), &self.switch())
        }

        fn switch(&self) -> PathBuf {
            self.directory.path().join("switch")
        }

        fn set(&self, value: &str) {
            fs::write(self.switch(), format!("{value}\n")).expect("it is writable");
        }

        fn value(&self) -> String {
            fs::read_to_string(self.switch()).expect("the switch").trim_end().to_owned()
        }

        fn assert_nothing_else_is_left(&self) {
            let left = fs::read_dir(self.directory.path()).expect("a directory").count();
            assert_eq!(left, 1, "the switch");
        }
    }

    #[test]
    fn grace_periods_are_expedited_for_a_while() {
        let host = Host::with("0");
        let held = host.begin().expect("the switch can be set").expect("nobody else has set it");
        assert_eq!(host.value(), BY_VCC);
        assert!(host.begin().expect("a look").is_none(), "the first one ends it");
        drop(held);
        assert_eq!(host.value(), "0");
        host.assert_nothing_else_is_left();
    }

    #[test]
    fn an_operators_own_setting_stays() {
        let host = Host::with("1");
        assert!(host.begin().expect("a look").is_none());
        assert_eq!(host.value(), "1");
        host.assert_nothing_else_is_left();

        host.set("0");
        let held = host.begin().expect("the switch can be set");
        host.set("1");
        drop(held);
        assert_eq!(host.value(), "1", "set meanwhile");
    }

    #[test]
    fn what_a_killed_process_has_set_is_reset() {
        let host = Host::with(BY_VCC);
        drop(host.begin().expect("the switch can be set").expect("nobody holds the lock"));
        assert_eq!(host.value(), "0");
    }

    #[test]
    fn a_host_without_the_switch_has_slow_grace_periods() {
        let host = Host::with("0");
        fs::remove_file(host.switch()).expect("it is there");
        assert_eq!(host.begin().expect_err("no switch").kind(), io::ErrorKind::NotFound);
    }
}
