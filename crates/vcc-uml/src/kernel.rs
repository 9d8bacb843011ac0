//! The guest kernel: built once, into a cache outside of any checkout.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{Doing, Error, Result};
use crate::temp_dir::TempDir;

macro_rules! recipe {
    ($($file:literal)*) => {
        [$(($file, include_str!(concat!("../../../guest/", $file)))),*]
    };
}

/// The build's inputs besides Debian's source package, below guest/.
const RECIPE: [(&str, &str); 18] = recipe! {
    "debian.sh"
    "kernel/build.sh"
    "kernel/defconfig"
    "kernel/01-hz.patch"
    "kernel/02-free-until.patch"
    "kernel/03-run-at-any-time.patch"
    "kernel/04-still-clock.patch"
    "kernel/05-shared-interrupts.patch"
    "kernel/06-flood.patch"
    "kernel/07-large-xstate.patch"
    "kernel/08-turns.patch"
    "kernel/09-code-model.patch"
    "kernel/tcp_flood.c"
    "kernel/unneeded"
    "pvtcp/6.12/1-tick-note-a-tick-that-comes-late.patch"
    "pvtcp/6.12/2-tcp-pvtcp.patch"
    "flood_tcp.h"
    "flood.h"
};

/// A release of Linux that the recipe builds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    V6_12,
    /// Its TCP has AccECN (RFC 9768).
    V7_2,
}

impl Release {
    fn name(self) -> &'static str {
        match self {
            Self::V6_12 => "6.12",
            Self::V7_2 => "7.2",
        }
    }
}

#[derive(Debug, Clone)]
pub struct Kernel {
    path: PathBuf,
}

impl Kernel {
    /// Builds the kernel if it is not cached. That takes minutes and is announced on standard
    /// error.
    pub fn find_or_build(release: Release) -> Result<Self> {
        let recipe = TempDir::create("vcc-guest-kernel")?;
        for directory in ["kernel", "pvtcp/6.12"] {
            let path = recipe.path().join(directory);
            fs::create_dir_all(&path).doing(|| format!("create {}", path.display()))?;
        }
        for (name, text) in RECIPE {
            let path = recipe.path().join(name);
            fs::write(&path, text).doing(|| format!("write {}", path.display()))?;
        }
        let output = Command::new("sh")
            .arg(recipe.path().join("kernel/build.sh"))
            .args(["--release", release.name()])
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .doing(|| "run the guest kernel's build script".into())?;
        if !output.status.success() {
            return Err(Error::Kernel { why: "its build failed; see the messages above".into() });
        }
        let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        if !path.is_file() {
            let why = format!("its build reported `{}`, which does not exist", path.display());
            return Err(Error::Kernel { why });
        }
        Ok(Self { path })
    }

    /// A kernel built elsewhere, for User-Mode Linux and with the same patches.
    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recipe_is_the_whole_directory() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guest/kernel");
        let files = fs::read_dir(directory).expect("a directory").flatten();
        let mut files: Vec<String> =
            files.map(|file| file.file_name().to_string_lossy().into_owned()).collect();
        files.sort();
        let mut recipe: Vec<_> =
            RECIPE.iter().filter_map(|(name, _)| name.strip_prefix("kernel/")).collect();
        recipe.sort_unstable();
        assert_eq!(files, recipe);
    }
}
