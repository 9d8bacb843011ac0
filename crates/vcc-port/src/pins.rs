//! What outlives the command: links and maps pinned in the BPF file system.
//!
//! Beside the links the flow map must be pinned too: the kernel cancels the timers of a map as
//! soon as user space holds it no more, although the programs still use it.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use libbpf_rs::query::LinkTypeInfo;
use libbpf_rs::{Link, MapHandle};

use crate::datapath::Maps;
use crate::device::Device;
use crate::tcx::Hook;
use crate::{Error, Result, bpffs};

const PORTS: &str = "/sys/fs/bpf/vcc";
const MAPS: [&str; 3] = ["flows", "params", "counters"];

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

    fn link_path(&self, hook: Hook) -> PathBuf {
        self.path().join(format!("{}_link", hook.program_name()))
    }

    /// Pins everything, or nothing.
    pub(crate) fn create(&self, links: &mut [Link; 2], maps: &mut Maps) -> Result<()> {
        let path = self.path();
        let doing = || format!("pin the attachment to `{}`", self.device.name);
        fs::create_dir(&path).map_err(|e| Error::system(doing(), e))?;
        let result = self.create_files(links, maps);
        if result.is_err() {
            // The error that is told is the first; what could not be removed is swept up later.
            let _ = self.remove();
        }
        result.map_err(|e| Error::system(doing(), e))
    }

    fn create_files(&self, links: &mut [Link; 2], maps: &mut Maps) -> libbpf_rs::Result<()> {
        let path = self.path();
        for (map, name) in
            [&mut maps.flows, &mut maps.params, &mut maps.counters].into_iter().zip(MAPS)
        {
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

    pub(crate) fn open_maps(&self) -> Result<Maps> {
        let path = self.path();
        let open =
            |name| MapHandle::from_pinned_path(path.join(name)).map_err(|e| self.cannot_open(e));
        let [flows, params, counters] = MAPS;
        Ok(Maps { flows: open(flows)?, params: open(params)?, counters: open(counters)? })
    }

    fn cannot_open(&self, error: libbpf_rs::Error) -> Error {
        Error::system(format!("open what is pinned for `{}`", self.device.name), error)
    }

    /// Whether the device has gone, or whoever made the directory died half way.
    fn is_stale(&self) -> Result<bool> {
        let maps = MAPS.into_iter().map(|name| self.path().join(name));
        let links = Hook::BOTH.into_iter().map(|hook| self.link_path(hook));
        if !maps.chain(links).all(|path| path.exists()) {
            return Ok(true);
        }
        for link in self.open_links()? {
            let info = link.info().map_err(|e| Error::system("read a pinned link", e))?;
            if matches!(info.info, LinkTypeInfo::Tcx(tcx) if tcx.ifindex == 0) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(crate) fn remove(&self) -> Result<()> {
        let path = self.path();
        let remove_all = || {
            for entry in fs::read_dir(&path)? {
                fs::remove_file(entry?.path())?;
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

/// Removes what was left by devices that have gone; returns their names.
pub(crate) fn sweep() -> Result<Vec<String>> {
    if all()?.is_empty() {
        return Ok(Vec::new());
    }
    let _lock = lock()?;
    let mut gone = Vec::new();
    for pin in all()? {
        if pin.is_stale()? {
            pin.remove()?;
            gone.push(pin.device.name);
        }
    }
    Ok(gone)
}

/// One command at a time changes what is pinned; the lock ends with the value.
pub(crate) fn lock() -> Result<File> {
    let failed = |e| Error::system(format!("lock {PORTS}"), e);
    bpffs::require()?;
    fs::create_dir_all(PORTS).map_err(failed)?;
    let directory = File::open(PORTS).map_err(failed)?;
    // SAFETY: the call takes no pointers, and the descriptor is open.
    if unsafe { libc::flock(directory.as_raw_fd(), libc::LOCK_EX) } < 0 {
        return Err(failed(io::Error::last_os_error()));
    }
    Ok(directory)
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
