//! Directories that are removed with the run that created them.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::error::{Doing, Result};
use crate::system::check;

/// A directory that is removed on drop. If the process is killed, the next one that creates a
/// directory with the same prefix removes it.
pub(crate) struct TempDir {
    path: PathBuf,
    /// Marks the directory as in use.
    _lock: File,
}

impl TempDir {
    pub fn create(prefix: &str) -> Result<Self> {
        let parent = std::env::temp_dir();
        let doing = || format!("create {}", parent.join(format!("{prefix}.XXXXXX")).display());
        remove_abandoned(&parent, prefix);
        loop {
            let path = make_directory(&parent, prefix).doing(doing)?;
            if let Some(_lock) = lock(&path).doing(doing)? {
                return Ok(Self { path, _lock });
            }
            // Another process was about to remove the directory as abandoned: try again.
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // A dying guest may still write there; that is no error.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn make_directory(parent: &Path, prefix: &str) -> io::Result<PathBuf> {
    let pattern = parent.join(format!("{prefix}.XXXXXX"));
    let mut name = [pattern.to_string_lossy().as_bytes(), &[0]].concat();
    // SAFETY: a string with its end, which the call changes in place.
    if unsafe { libc::mkdtemp(name.as_mut_ptr().cast()) }.is_null() {
        return Err(io::Error::last_os_error());
    }
    name.pop();
    Ok(PathBuf::from(String::from_utf8_lossy(&name).into_owned()))
}

/// None if another process holds it, or it is gone.
fn lock(directory: &Path) -> io::Result<Option<File>> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    // SAFETY: takes no pointers, and the descriptor is open.
    match check(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
        locked => locked?,
    };
    let is_there = match fs::symlink_metadata(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        there => there?.ino() == file.metadata()?.ino(),
    };
    Ok(is_there.then_some(file))
}

/// Removes the directories of killed runs. Those that cannot be removed belong to another user and
/// do no harm.
fn remove_abandoned(parent: &Path, prefix: &str) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    let is_ours = |name: &str| {
        name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('.')).map(str::len) == Some(6)
    };
    let ours = entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_ours));
    for path in ours.map(|entry| entry.path()) {
        if let Ok(Some(_lock)) = lock(&path) {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killed_runs_directory_is_removed_by_the_next() {
        let prefix = format!("vcc-test-{}", std::process::id());
        let abandoned = make_directory(&std::env::temp_dir(), &prefix).expect("a directory");
        fs::write(abandoned.join("console"), "x").expect("written");
        let held = TempDir::create(&prefix).expect("a directory");
        assert!(!abandoned.exists());
        let second = TempDir::create(&prefix).expect("a directory");
        assert!(held.path().exists() && second.path().exists());
        let path = held.path().to_owned();
        drop(held);
        assert!(!path.exists());
    }

    #[test]
    fn directories_of_another_prefix_are_kept() {
        let prefix = format!("vcc-test-other-{}", std::process::id());
        let other = make_directory(&std::env::temp_dir(), &format!("{prefix}-more")).expect("made");
        drop(TempDir::create(&prefix).expect("a directory"));
        assert!(other.exists());
        fs::remove_dir(other).expect("removed");
    }
}
