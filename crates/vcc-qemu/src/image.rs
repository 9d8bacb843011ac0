//! Kernel and first file system of the guest: made once, into a cache outside of any checkout.

use std::fs;
use std::io::{self, Error};
use std::iter;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::vm::QEMU;

macro_rules! recipe {
    ($($file:literal)*) => {
        [$(($file, include_str!(concat!("../../../guest/", $file)))),*]
    };
}

/// The build's inputs besides Debian's packages, below guest/.
const RECIPE: [(&str, &str); 9] = recipe! {
    "debian.sh"
    "live/build.sh"
    "live/defconfig"
    "live/init"
    "pvtcp/6.12/1-tick-note-a-tick-that-comes-late.patch"
    "pvtcp/6.12/2-tcp-pvtcp.patch"
    "pvtcp/7.3/1-tick-note-a-tick-that-comes-late.patch"
    "pvtcp/7.3/2-tcp-pvtcp.patch"
    "pvtcp/build.sh"
};

/// The kernel of a guest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// Debian's for virtual machines, of the machine's own release.
    #[default]
    Debian,
    /// Linux 6.12 with PVTCP.
    Pvtcp6_12,
    /// Linux 7.3 with PVTCP.
    Pvtcp7_3,
}

impl Kernel {
    /// Options of guest/live/build.sh.
    fn options(self) -> &'static [&'static str] {
        match self {
            Self::Debian => &[],
            Self::Pvtcp6_12 => &["--pvtcp", "6.12"],
            Self::Pvtcp7_3 => &["--pvtcp", "7.3"],
        }
    }
}

/// A directory with `vmlinuz` and `initrd`, and the QEMU that boots it.
#[derive(Debug, Clone)]
pub struct Image {
    directory: PathBuf,
    pub(crate) qemu: PathBuf,
}

impl Image {
    /// Makes the guest if it is not cached. This downloads packages, builds a kernel with PVTCP, and is
    /// announced on standard error.
    pub fn find_or_build(kernel: Kernel) -> io::Result<Self> {
        build(kernel.options())?.ok_or_else(|| {
            Error::other("cannot make the virtual machines' guest; see the messages above")
        })
    }

    /// None if it has not been made.
    pub fn cached(kernel: Kernel) -> io::Result<Option<Self>> {
        let arguments: Vec<&str> =
            iter::once("--cached").chain(kernel.options().iter().copied()).collect();
        build(&arguments)
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
        let path = recipe.path().join(name);
        fs::create_dir_all(path.parent().unwrap_or(&path))?;
        fs::write(&path, text)?;
    }
    let output = Command::new("sh")
        .arg(recipe.path().join("live/build.sh"))
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    let path = String::from_utf8_lossy(&output.stdout);
    let is_made = output.status.success() && Path::new(path.trim()).is_dir();
    let image = || Image { directory: path.trim().into(), qemu: QEMU.into() };
    Ok(is_made.then(image))
}
