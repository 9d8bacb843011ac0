//! The BPF file system, in which pinned links and maps outlive their process.

use std::ffi::{CStr, CString};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use crate::{Error, Result, device, open_own_directory};

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

/// Mounts it, unless it is mounted. Where that would end with this command, it is an error.
pub fn require() -> Result<()> {
    if is_mounted() {
        return Ok(());
    }
    require_lasting()?;
    mount()
}

/// `ip netns exec` gives its command a mount namespace, in which /sys is new and nothing is mounted
/// below: what is pinned elsewhere is not seen there, and what is pinned there ends with it. A file system
/// that somebody has mounted there is his decision.
pub(crate) fn require_lasting() -> Result<()> {
    if is_mounted() || has_mounts_of_all_ancestors().unwrap_or(true) {
        return Ok(());
    }
    Err(Error::PassingMounts { netns: device::netns_path()? })
}

/// Is the mount namespace that of all processes between the first one and this one? An error if the
/// kernel does not say whose it is.
fn has_mounts_of_all_ancestors() -> io::Result<bool> {
    let mounts_of = |process: &str| -> io::Result<u64> {
        Ok(fs::metadata(format!("/proc/{process}/ns/mnt"))?.ino())
    };
    let own = mounts_of("thread-self")?;
    let mut process = "self".to_owned();
    while let Some(parent) = parent_of(&process)? {
        // Those that may do more than this one cannot be looked at.
        if mounts_of(&parent).is_ok_and(|theirs| theirs != own) {
            return Ok(false);
        }
        process = parent;
    }
    Ok(true)
}

/// None for the first process, and for one whose parent is in another PID namespace.
fn parent_of(process: &str) -> io::Result<Option<String>> {
    let status = fs::read(format!("/proc/{process}/status"))?;
    let status = String::from_utf8_lossy(&status);
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    Ok(parent.map(str::trim).filter(|parent| *parent != "0").map(str::to_owned))
}

/// Mounts it in the calling thread's mount namespace.
pub(crate) fn mount() -> Result<()> {
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

/// Exchanges what is pinned at the two places, in one step.
pub(crate) fn exchange(one: &Path, other: &Path) -> Result<()> {
    let c_path = |path: &Path| {
        CString::new(path.as_os_str().as_encoded_bytes()).expect("no zero in our own paths")
    };
    let (c_one, c_other) = (c_path(one), c_path(other));
    // SAFETY: both strings end in NUL and outlive the call.
    let status = unsafe {
        libc::renameat2(
            libc::AT_FDCWD,
            c_one.as_ptr(),
            libc::AT_FDCWD,
            c_other.as_ptr(),
            libc::RENAME_EXCHANGE,
        )
    };
    if status == 0 {
        return Ok(());
    }
    Err(Error::last_os(format!("let {} be {}", one.display(), other.display())))
}
