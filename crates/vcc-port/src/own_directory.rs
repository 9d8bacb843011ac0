//! Directories of ours, which nobody else may have made or have led elsewhere.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Opens one, unless it is a symbolic link, or neither root's nor that of who we are.
pub fn open_own_directory(path: &Path) -> io::Result<File> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let directory =
        OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(|error| {
            let is_link = fs::symlink_metadata(path).is_ok_and(|it| it.is_symlink());
            if is_link { refused("it is a symbolic link") } else { error }
        })?;
    let owner = directory.metadata()?.uid();
    // SAFETY: the call cannot fail.
    if owner != 0 && owner != unsafe { libc::geteuid() } {
        return Err(refused(&format!("it belongs to user {owner}")));
    }
    Ok(directory)
}

fn refused(why: &str) -> io::Error {
    io::Error::other(format!("{why}, and vcc uses only its own: look who made it, and remove it"))
}
