//! The directory of the control socket.

use std::env;
use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use vcc_port::open_own_directory;

use crate::{Error, Result};

#[derive(Clone, Debug)]
pub struct RuntimeDir(PathBuf);

impl RuntimeDir {
    const ELSE: &str = "/run/vcc";
    const MODE: u32 = 0o750;

    /// systemd tells a service its directories in $RUNTIME_DIRECTORY; ours is the first.
    pub fn of_environment() -> Self {
        let told = env::var("RUNTIME_DIRECTORY").ok();
        let first = told.as_deref().and_then(|told| told.split(':').next());
        Self(first.filter(|path| !path.is_empty()).unwrap_or(Self::ELSE).into())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn control(&self) -> PathBuf {
        self.0.join("control")
    }

    /// Creates the directory, or takes it over and restricts its mode.
    pub(crate) fn create(&self) -> Result<()> {
        let path = &self.0;
        let failed = |e| Error::system(format!("use {}", path.display()), e);
        match DirBuilder::new().mode(Self::MODE).create(path) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(failed(e)),
            _ => {}
        }
        let directory = open_own_directory(path).map_err(failed)?;
        directory.set_permissions(Permissions::from_mode(Self::MODE)).map_err(failed)
    }
}
