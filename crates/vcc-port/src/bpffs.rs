//! The file system where links and maps outlive their process.

use std::ffi::CStr;
use std::io;

use crate::{Error, Result};

/// Where systemd and bpftool mount it too.
const PLACE: &CStr = c"/sys/fs/bpf";

pub(crate) fn is_mounted() -> bool {
    // SAFETY: all-zero bytes are a valid statfs.
    let mut status: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends in NUL, and the call writes to the structure that it is given.
    let answer = unsafe { libc::statfs(PLACE.as_ptr(), &mut status) };
    answer == 0 && status.f_type == libc::BPF_FS_MAGIC
}

/// Mounts it, unless it is there.
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
