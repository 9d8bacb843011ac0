//! Kernel and first file system of the guest: made once, into a cache outside of any checkout.

use std::fs;
use std::io::{self, Error};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::vm::QEMU;

/// The build's inputs besides Debian's packages.
const RECIPE: [(&str, &str); 2] = [
    ("build.sh", include_str!("../../../guest/live/build.sh")),
    ("init", include_str!("../../../guest/live/init")),
];

/// A directory with `vmlinuz` and `initrd`, and the QEMU that boots it.
#[derive(Debug, Clone)]
pub struct Image {
    directory: PathBuf,
    pub(crate) qemu: PathBuf,
}

impl Image {
    /// Makes the guest if it is not cached. This downloads packages, and is announced on standard
    /// error.
    pub fn find_or_build() -> io::Result<Self> {
        build(&[])?.ok_or_else(|| {
            Error::other("cannot make the virtual machines' guest; see the messages above")
        })
    }

    /// None if it has not been made.
    pub fn cached() -> io::Result<Option<Self>> {
        build(&["--cached"])
    }

    /// With another QEMU than the installed one.
    pub fn under(self, qemu: PathBuf) -> Self {
        Image { qemu, ..self }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

fn build(arguments: &[&str]) -> io::Result<Option<Image>> {
    let recipe = tempfile::tempdir()?;
    for (name, text) in RECIPE {
        fs::write(recipe.path().join(name), text)?;
    }
    let output = Command::new("sh")
        .arg(recipe.path().join("build.sh"))
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    let path = String::from_utf8_lossy(&output.stdout);
    let is_made = output.status.success() && Path::new(path.trim()).is_dir();
    let image = || Image { directory: path.trim().into(), qemu: QEMU.into() };
    Ok(is_made.then(image))
}
