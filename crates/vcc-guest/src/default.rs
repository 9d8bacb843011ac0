//! The congestion control of new connections in the calling thread's network namespace, and the one before.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process;

use crate::{Error, Result};

/// What replaces a congestion control if the one before it is unknown or gone, in this order.
const FALLBACKS: [&str; 2] = ["cubic", "reno"];

/// The sysctl, and the file with the name of the congestion control that was the default before.
#[derive(Debug)]
pub(crate) struct DefaultControl {
    pub sysctl: PathBuf,
    pub remembered: PathBuf,
}

/// What became of the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Restored {
    /// It was another congestion control, and still is.
    Untouched { current: String },
    To {
        current: String,
        /// The one before was unknown or is gone.
        is_fallback: bool,
    },
}

impl DefaultControl {
    pub fn current(&self) -> Result<String> {
        let text = fs::read_to_string(&self.sysctl);
        let text = text.map_err(|e| Error::file("read", &self.sysctl, e))?;
        Ok(text.trim().to_owned())
    }

    /// The one before, if it is known.
    pub fn before(&self) -> Result<Option<String>> {
        match fs::read_to_string(&self.remembered) {
            Ok(text) => Ok(Some(text.trim().to_owned()).filter(|name| is_name(name))),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::file("read", &self.remembered, e)),
        }
    }

    /// Makes `name` the default, after it has written down the one before.
    pub fn take(&self, name: &str) -> Result<()> {
        let current = self.current()?;
        if current == name {
            return Ok(());
        }
        self.remember(&current).map_err(|e| Error::file("write", &self.remembered, e))?;
        self.set(name)
    }

    /// Makes the one before the default again, if `name` is the default.
    pub fn give_back(&self, name: &str, available: &[String]) -> Result<Restored> {
        let current = self.current()?;
        if current != name {
            self.forget()?;
            return Ok(Restored::Untouched { current });
        }
        let can_replace = |other: &str| other != name && available.iter().any(|one| one == other);
        let before = self.before()?.filter(|before| can_replace(before));
        let is_fallback = before.is_none();
        let fallback = || FALLBACKS.into_iter().find(|one| can_replace(one)).map(str::to_owned);
        let next = before.or_else(fallback).ok_or_else(|| Error::NoOther { name: name.into() })?;
        self.set(&next)?;
        self.forget()?;
        Ok(Restored::To { current: next, is_fallback })
    }

    fn set(&self, name: &str) -> Result<()> {
        fs::write(&self.sysctl, name).map_err(|e| Error::file("write", &self.sysctl, e))?;
        match self.current()? {
            current if current == name => Ok(()),
            current => Err(Error::DefaultKept { name: name.into(), current }),
        }
    }

    /// In one step: an interrupted one leaves the file as it was.
    fn remember(&self, name: &str) -> io::Result<()> {
        let next = next_to(&self.remembered);
        fs::write(&next, format!("{name}\n"))?;
        fs::rename(&next, &self.remembered)
    }

    fn forget(&self) -> Result<()> {
        match fs::remove_file(&self.remembered) {
            Err(e) if e.kind() != ErrorKind::NotFound => {
                Err(Error::file("remove", &self.remembered, e))
            }
            _ => Ok(()),
        }
    }
}

fn next_to(path: &Path) -> PathBuf {
    path.with_extension(format!("{}.next", process::id()))
}

/// Could it be the name of a congestion control?
fn is_name(text: &str) -> bool {
    const NAME_BYTES_MAX: usize = 15;
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    struct Trial {
        control: DefaultControl,
        _directory: TempDir,
    }

    impl Trial {
        fn new(current: &str) -> Self {
            let directory = tempfile::tempdir().expect("a directory");
            let path = |name| directory.path().join(name);
            let control = DefaultControl { sysctl: path("default"), remembered: path("before") };
            fs::write(&control.sysctl, format!("{current}\n")).expect("written");
            Self { control, _directory: directory }
        }

        fn current(&self) -> String {
            self.control.current().expect("a default")
        }

        fn before(&self) -> Option<String> {
            self.control.before().expect("readable")
        }

        fn take(&self) {
            self.control.take("flood").expect("taken");
        }

        fn give_back(&self, available: &str) -> Result<Restored> {
            let available: Vec<String> = available.split(' ').map(str::to_owned).collect();
            self.control.give_back("flood", &available)
        }

        fn assert_given_back(&self, available: &str, expected: &str, is_fallback: bool) {
            let given = self.give_back(available).expect("given back");
            assert_eq!(given, Restored::To { current: expected.into(), is_fallback });
            assert_eq!((self.current().as_str(), self.before()), (expected, None));
        }
    }

    #[test]
    fn the_one_before_comes_back() {
        let trial = Trial::new("bbr");
        for _ in 0..2 {
            trial.take();
            // A second time changes nothing.
            trial.take();
            assert_eq!(
                (trial.current().as_str(), trial.before().as_deref()),
                ("flood", Some("bbr"))
            );
            trial.assert_given_back("reno cubic bbr flood", "bbr", false);
            let again = trial.give_back("reno cubic bbr").expect("nothing to do");
            assert_eq!(again, Restored::Untouched { current: "bbr".into() });
        }
    }

    #[test]
    fn an_interruption_after_the_note_is_mended() {
        let interrupted = || {
            let trial = Trial::new("bbr");
            trial.control.remember("bbr").expect("written");
            trial
        };
        let trial = interrupted();
        trial.take();
        trial.assert_given_back("cubic bbr flood", "bbr", false);

        // Or another default was set meanwhile.
        let trial = interrupted();
        fs::write(&trial.control.sysctl, "cubic\n").expect("written");
        trial.take();
        assert_eq!(trial.before().as_deref(), Some("cubic"));

        let trial = interrupted();
        let given = trial.give_back("cubic bbr flood").expect("nothing to do");
        assert_eq!(given, Restored::Untouched { current: "bbr".into() });
        assert_eq!(trial.before(), None);
    }

    #[test]
    fn a_default_of_others_stays() {
        let trial = Trial::new("cubic");
        trial.take();
        fs::write(&trial.control.sysctl, "bbr\n").expect("written");
        let given = trial.give_back("cubic bbr flood").expect("nothing to do");
        assert_eq!(given, Restored::Untouched { current: "bbr".into() });
        assert_eq!((trial.current().as_str(), trial.before()), ("bbr", None));
    }

    #[test]
    fn without_the_one_before_there_is_another() {
        // As of a sysctl.conf.
        Trial::new("flood").assert_given_back("reno cubic flood", "cubic", true);
        Trial::new("flood").assert_given_back("reno flood", "reno", true);
        // Its module is gone.
        let trial = Trial::new("bbr");
        trial.take();
        trial.assert_given_back("reno cubic flood", "cubic", true);
        for garbage in ["", "two words", "a name that is far too long"] {
            let trial = Trial::new("flood");
            fs::write(&trial.control.remembered, garbage).expect("written");
            trial.assert_given_back("reno cubic flood", "cubic", true);
        }
        let error = Trial::new("flood").give_back("flood").expect_err("no other");
        assert!(error.to_string().contains("no other that could replace it"), "{error}");
    }

    #[test]
    fn files_that_cannot_be_written_are_named() {
        let trial = Trial::new("cubic");
        let control = DefaultControl {
            remembered: "/proc/nowhere/before".into(),
            sysctl: trial.control.sysctl.clone(),
        };
        let error = control.take("flood").expect_err("no such directory").to_string();
        assert!(error.starts_with("cannot write /proc/nowhere/before: "), "{error}");
        assert_eq!(trial.current(), "cubic", "nothing is changed before it is written down");
    }
}
