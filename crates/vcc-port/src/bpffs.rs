//! The BPF file system, in which pinned links and maps outlive their process.

use std::ffi::CStr;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use crate::{Error, Result, open_own_directory};

/// systemd and bpftool mount it here as well.
const PLACE: &CStr = c"/sys/fs/bpf";

/// The directory of everything that vcc pins.
pub(crate) const HOME: &str = "/sys/fs/bpf/vcc";

pub(crate) fn is_mounted() -> bool {
    // SAFETY: all-zero bytes are a valid statfs.
    let mut status: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends in NUL, and the call writes to the structure that it is given.
    let answer = unsafe { libc::statfs(PLACE.as_ptr(), &mut status) };
    answer == 0 && status.f_type == libc::BPF_FS_MAGIC
}

/// Mounts it, unless it is mounted.
pub(crate) fn require() -> Result<()> {
    if is_mounted() {
        return Ok(());
    }
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC | libc::MS_RELATIME;
    let (name, options) = (c"bpf", c"mode=0700");
    // SAFETY: all strings end in NUL and outlive the call.
    let status = unsafe {
        let options = options.as_ptr().cast();
        libc::mount(name.as_ptr(), PLACE.as_ptr(), name.as_ptr(), flags, options)
    };
    if status < 0 {
        let path = PLACE.to_string_lossy().into_owned();
        return Err(Error::NoBpfFilesystem { path, source: io::Error::last_os_error() });
    }
    Ok(())
}

/// Whether there is a [`HOME`]. A directory that other users may write to is an error: its content
/// cannot be trusted.
pub(crate) fn has_home() -> Result<bool> {
    match look_at_home() {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(Error::system(format!("use {HOME}"), e)),
    }
}

fn look_at_home() -> io::Result<()> {
    const OTHERS_WRITE: u32 = 0o022;
    let mode = open_own_directory(Path::new(HOME))?.metadata()?.mode();
    if mode & OTHERS_WRITE != 0 {
        return Err(io::Error::other(format!(
            "its mode {:o} lets other users write to it: check its content, then `chmod 700` it",
            mode & 0o7777
        )));
    }
    Ok(())
}

/// Creates [`HOME`] if it does not exist.
pub(crate) fn require_home() -> Result<()> {
    require()?;
    match DirBuilder::new().mode(0o700).create(HOME) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
            return Err(Error::system(format!("create {HOME}"), e));
        }
        _ => {}
    }
    has_home().map(drop)
}
