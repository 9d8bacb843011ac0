//! The directory where processes of vcc on this host find each other.

use std::env;
use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use vcc_port::open_own_directory;

#[derive(Clone, Debug)]
pub struct RuntimeDir(PathBuf);

impl RuntimeDir {
    const ELSE: &str = "/run/vcc";
    const MODE: u32 = 0o750;

    /// systemd passes a service its directories in $RUNTIME_DIRECTORY; ours is the first.
    pub fn of_environment() -> Self {
        let directories = env::var("RUNTIME_DIRECTORY").ok();
        let first = directories.as_deref().and_then(|directories| directories.split(':').next());
        Self(first.filter(|path| !path.is_empty()).unwrap_or(Self::ELSE).into())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The daemon's socket.
    pub fn control(&self) -> PathBuf {
        self.0.join("control")
    }

    /// The directory of the sockets of `vcc domain`.
    pub fn domains(&self) -> PathBuf {
        self.0.join("domains")
    }

    /// Creates the directory, or takes it over and restricts its mode.
    ///
    /// # Errors
    /// It is not the caller's own.
    pub fn create(&self) -> io::Result<()> {
        match DirBuilder::new().mode(Self::MODE).create(&self.0) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
            _ => {}
        }
        open_own_directory(&self.0)?.set_permissions(Permissions::from_mode(Self::MODE))
    }
}
