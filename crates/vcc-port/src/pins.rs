//! What outlives the command: links and maps pinned in the BPF file system.
//!
//! Beside the links the flow map must be pinned too: the kernel cancels the timers of a map as
//! soon as user space holds it no more, although the programs still use it.

use std::cell::Cell;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use libbpf_rs::{ErrorKind, Link, MapHandle, Program};

use crate::datapath::Maps;
use crate::device::Device;
use crate::tcx::{self, Hook};
use crate::{Error, Result, bpffs, sweep};

const PORTS: &str = "/sys/fs/bpf/vcc";
const SWEEP: &str = "sweep";
/// A directory, for the BPF file system has no other files to lock.
const GOVERNOR: &str = "/sys/fs/bpf/vcc/governor";

/// What one process at a time does with a port.
#[derive(Clone, Copy)]
pub(crate) enum Role {
    Tracing,
    Emitting,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::Tracing => "tracing",
            Self::Emitting => "emitting",
        }
    }
}

/// The directory of one port. A device's name can recur in another network namespace, and the
/// index of a device in another run of the namespace: the directory carries both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pin {
    pub device: Device,
}

impl Pin {
    pub(crate) fn of(device: &Device) -> Self {
        Self { device: device.clone() }
    }

    /// The BPF file system takes no dots in names; devices have no colons in theirs.
    fn directory_name(&self) -> String {
        let Device { name, ifindex, netns_inode } = &self.device;
        format!("{}@{netns_inode}-{ifindex}", name.replace('.', ":"))
    }

    fn parse(directory_name: &str) -> Option<Self> {
        let (name, place) = directory_name.rsplit_once('@')?;
        let (netns_inode, ifindex) = place.split_once('-')?;
        Some(Self {
            device: Device {
                name: name.replace(':', "."),
                ifindex: ifindex.parse().ok()?,
                netns_inode: netns_inode.parse().ok()?,
            },
        })
    }

    pub(crate) fn path(&self) -> PathBuf {
        Path::new(PORTS).join(self.directory_name())
    }

    /// What is pinned last and removed first: with it, everything is there.
    fn complete_path(&self) -> PathBuf {
        self.link_path(Hook::ToGuest)
    }

    fn link_path(&self, hook: Hook) -> PathBuf {
        self.path().join(format!("{}_link", hook.program_name()))
    }

    /// Pins everything, or nothing.
    pub(crate) fn create(
        &self,
        links: &mut [Link; 2],
        maps: &mut Maps,
        sweep: &OwnedFd,
    ) -> Result<()> {
        let path = self.path();
        let doing = || format!("pin the attachment to `{}`", self.device.name);
        fs::create_dir(&path).map_err(|e| Error::system(doing(), e))?;
        let result = self.create_files(links, maps, sweep);
        if result.is_err() {
            // The error that is told is the first; what could not be removed is swept up later.
            let _ = self.remove();
        }
        result.map_err(|e| Error::system(doing(), e))
    }

    fn create_files(
        &self,
        links: &mut [Link; 2],
        maps: &mut Maps,
        sweep: &OwnedFd,
    ) -> libbpf_rs::Result<()> {
        let path = self.path();
        sweep::pin(sweep, &path.join(SWEEP))?;
        for (name, map) in maps.with_names() {
            map.pin(path.join(name))?;
        }
        for (link, hook) in links.iter_mut().zip(Hook::BOTH) {
            link.pin(self.link_path(hook))?;
        }
        Ok(())
    }

    pub(crate) fn open_links(&self) -> Result<[Link; 2]> {
        let open = |hook| Link::open(self.link_path(hook)).map_err(|e| self.cannot_open(e));
        Ok([open(Hook::FromGuest)?, open(Hook::ToGuest)?])
    }

    /// The program that looks at all flows; None if another version had none.
    pub(crate) fn open_sweep(&self) -> Option<OwnedFd> {
        Program::fd_from_pinned_path(self.path().join(SWEEP)).ok()
    }

    pub(crate) fn replace_sweep(&self, program: &OwnedFd) -> Result<()> {
        let path = self.path().join(SWEEP);
        let replace = || -> libbpf_rs::Result<()> {
            match fs::remove_file(&path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e.into()),
                _ => {}
            }
            sweep::pin(program, &path)
        };
        replace().map_err(|e| Error::system(format!("pin a program of `{}`", self.device.name), e))
    }

    /// The maps; None if another version of vcc pinned them.
    pub(crate) fn open_maps(&self) -> Result<Option<Maps>> {
        let path = self.path();
        let foreign = Cell::new(false);
        let maps = Maps::open(|name| {
            MapHandle::from_pinned_path(path.join(name)).map_err(|e| {
                foreign.set(e.kind() == ErrorKind::NotFound);
                self.cannot_open(e)
            })
        });
        match maps {
            Ok(maps) => Ok(maps.are_understood().then_some(maps)),
            Err(_) if foreign.get() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Takes a role until the file is dropped, or the process ends; None if another has it.
    pub(crate) fn take(&self, role: Role) -> Result<Option<File>> {
        let doing = || format!("lock what is pinned for `{}`", self.device.name);
        let path = self.path().join(role.name());
        match fs::create_dir(&path) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
                return Err(Error::system(doing(), e));
            }
            _ => {}
        }
        let directory = File::open(&path).map_err(|e| Error::system(doing(), e))?;
        match lock_file(&directory, libc::LOCK_EX | libc::LOCK_NB) {
            Ok(()) => Ok(Some(directory)),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(e) => Err(Error::system(doing(), e)),
        }
    }

    fn cannot_open(&self, error: libbpf_rs::Error) -> Error {
        Error::system(format!("open what is pinned for `{}`", self.device.name), error)
    }

    /// Whether all is there: it is not being made or removed, nor did who did that die half way.
    pub(crate) fn is_complete(&self) -> bool {
        self.complete_path().exists()
    }

    /// Whether the device has gone, or whoever made the directory died half way.
    fn is_stale(&self) -> Result<bool> {
        if !self.is_complete() {
            return Ok(true);
        }
        for link in self.open_links()? {
            if !tcx::is_attached(&link)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(crate) fn remove(&self) -> Result<()> {
        let path = self.path();
        let remove_all = || {
            match fs::remove_file(self.complete_path()) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                _ => {}
            }
            for entry in fs::read_dir(&path)? {
                let entry = entry?;
                if entry.file_type()?.is_dir() {
                    fs::remove_dir(entry.path())?;
                } else {
                    fs::remove_file(entry.path())?;
                }
            }
            fs::remove_dir(&path)
        };
        remove_all().map_err(|e| Error::system(format!("remove {}", path.display()), e))
    }
}

/// All that are there, in the order of their names.
pub(crate) fn all() -> Result<Vec<Pin>> {
    let failed = |e| Error::system(format!("read {PORTS}"), e);
    let entries = match fs::read_dir(PORTS) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(failed(e)),
    };
    let mut pins = Vec::new();
    for entry in entries {
        let name = entry.map_err(failed)?.file_name();
        pins.extend(name.to_str().and_then(Pin::parse));
    }
    pins.sort_by_key(Pin::directory_name);
    Ok(pins)
}

/// The pin of a device, by the index and not by the name, which may have changed since.
pub(crate) fn find(device: &Device) -> Result<Option<Pin>> {
    let same = |pin: &Pin| {
        pin.device.ifindex == device.ifindex && pin.device.netns_inode == device.netns_inode
    };
    Ok(all()?.into_iter().find(same))
}

/// Removes what was left by devices that have gone, after `last` has seen it; returns their names.
pub(crate) fn sweep(last: impl Fn(&Pin)) -> Result<Vec<String>> {
    if all()?.is_empty() {
        return Ok(Vec::new());
    }
    let _lock = lock()?;
    let mut gone = Vec::new();
    for pin in all()? {
        if pin.is_stale()? {
            last(&pin);
            pin.remove()?;
            gone.push(pin.device.name);
        }
    }
    Ok(gone)
}

/// Held by the one process that keeps this host's ports under a policy, until it is dropped.
pub struct Governor {
    _directory: File,
}

impl Governor {
    /// None: another process is it.
    pub fn become_it() -> Result<Option<Self>> {
        let failed = |e| Error::system(format!("lock {GOVERNOR}"), e);
        bpffs::require()?;
        fs::create_dir_all(GOVERNOR).map_err(failed)?;
        let directory = File::open(GOVERNOR).map_err(failed)?;
        match lock_file(&directory, libc::LOCK_EX | libc::LOCK_NB) {
            Ok(()) => Ok(Some(Self { _directory: directory })),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(e) => Err(failed(e)),
        }
    }
}

/// One command at a time changes what is pinned; the lock ends with the value.
pub(crate) fn lock() -> Result<File> {
    let failed = |e| Error::system(format!("lock {PORTS}"), e);
    bpffs::require()?;
    fs::create_dir_all(PORTS).map_err(failed)?;
    let directory = File::open(PORTS).map_err(failed)?;
    lock_file(&directory, libc::LOCK_EX).map_err(failed)?;
    Ok(directory)
}

fn lock_file(file: &File, operation: libc::c_int) -> io::Result<()> {
    // SAFETY: the call takes no pointers, and the descriptor is open.
    if unsafe { libc::flock(file.as_raw_fd(), operation) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_names_lead_back_to_the_device() {
        for name in ["vnet0", "eth0.100", "a@b-1", "x-1"] {
            let device = Device { name: name.into(), ifindex: 7, netns_inode: 4_026_531_840 };
            let directory_name = Pin::of(&device).directory_name();
            assert!(!directory_name.contains('.'), "{directory_name}");
            assert_eq!(Pin::parse(&directory_name), Some(Pin { device }));
        }
    }

    #[test]
    fn foreign_directories_are_no_pins() {
        for name in ["globals", "vnet0@", "vnet0@1", "vnet0@1-x", "@"] {
            assert_eq!(Pin::parse(name), None, "{name}");
        }
    }
}
