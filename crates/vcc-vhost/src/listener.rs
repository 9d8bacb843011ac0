//! Sockets on which this process serves, and why it cannot.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot listen on {}: {error}", path.display())]
    Listen { path: PathBuf, error: io::Error },
    #[error("another process serves {}", .0.display())]
    Served(PathBuf),
    #[error("{} exists and is not a socket: remove it, or choose another path", .0.display())]
    NoSocket(PathBuf),
    #[error("the tap was deleted: create it, and restart `vcc domain`")]
    WireGone,
    #[error("a tap of the detour of {0} was deleted: restart `vcc domain`")]
    DetourGone(String),
    #[error(
        "the device {0} was deleted or renamed, or has left this network namespace: restart `vcc domain` \
         with the device's present name"
    )]
    DeviceGone(String),
    #[error("cannot wait for frames: {0}")]
    Watch(#[from] io::Error),
}

/// In place of a socket that a process has left.
pub(crate) fn listen(path: &Path) -> Result<UnixListener, Error> {
    let cannot = |error| Error::Listen { path: path.to_owned(), error };
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(cannot(error)),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(Error::NoSocket(path.to_owned()));
        }
        Ok(_) if UnixStream::connect(path).is_ok() => return Err(Error::Served(path.to_owned())),
        Ok(_) => std::fs::remove_file(path).map_err(cannot)?,
    }
    UnixListener::bind(path).map_err(cannot)
}
