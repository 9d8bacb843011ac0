//! The module of the congestion control, for kernels without BPF struct_ops.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Error, Result};

#[derive(Debug)]
pub(crate) struct Module {
    pub name: String,
    /// Where the kernel has its modules.
    pub modules: PathBuf,
    pub modprobe: PathBuf,
    pub rmmod: PathBuf,
}

/// How the kernel has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    Absent,
    Loaded,
    BuiltIn,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unloading {
    Done,
    /// By so many connections and defaults of network namespaces.
    InUse(u64),
}

impl Module {
    fn directory(&self) -> PathBuf {
        self.modules.join(&self.name)
    }

    pub fn presence(&self) -> Presence {
        match self.directory() {
            directory if !directory.is_dir() => Presence::Absent,
            directory if is_loadable(&directory) => Presence::Loaded,
            _ => Presence::BuiltIn,
        }
    }

    /// An error says why there is none, for a message.
    pub fn load(&self) -> std::result::Result<(), String> {
        self.run(&self.modprobe)
    }

    pub fn unload(&self) -> Result<Unloading> {
        if let users @ 1.. = self.users()? {
            return Ok(Unloading::InUse(users));
        }
        // modprobe does not find a module that insmod has loaded.
        match self.run(&self.rmmod) {
            Ok(()) => Ok(Unloading::Done),
            // A connection was faster.
            Err(_) if self.users()? > 0 => Ok(Unloading::InUse(self.users()?)),
            Err(why) => Err(Error::ModuleStays { module: self.name.clone(), why }),
        }
    }

    fn users(&self) -> Result<u64> {
        let path = self.directory().join("refcnt");
        let text = fs::read_to_string(&path).map_err(|e| Error::file("read", &path, e))?;
        let number = text.trim().parse();
        number.map_err(|e| {
            Error::file("read", &path, std::io::Error::other(format!("{text:?}: {e}")))
        })
    }

    /// Runs the program with the module's name.
    fn run(&self, program: &Path) -> std::result::Result<(), String> {
        let command = || format!("`{} {}`", program.display(), self.name);
        let output = Command::new(program).arg(&self.name).output();
        let output = output.map_err(|e| format!("cannot run {}: {e}", command()))?;
        if output.status.success() {
            return Ok(());
        }
        let complaint = String::from_utf8_lossy(&output.stderr);
        match complaint.trim() {
            "" => Err(format!("{} ended with {}", command(), output.status)),
            complaint => Err(format!("{}: {complaint}", command())),
        }
    }
}

/// Only modules that were loaded have a state.
fn is_loadable(directory: &Path) -> bool {
    directory.join("initstate").exists()
}
