//! Opening directories of vcc only if no other user created or redirected them.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Opens a directory. It is an error if it is a symbolic link, or belongs to another user than root
/// and ours.
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
    io::Error::other(format!(
        "{why}, and vcc uses only directories of its own: find out who created it, and remove it"
    ))
}
