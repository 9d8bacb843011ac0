//! The links of ports pinned in the BPF file system, where they outlive the command.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use libbpf_rs::{Link, Program, ProgramMut};

use crate::bpffs::HOME;
use crate::device::{self, Device};
use crate::lock::{self, Lock};
use crate::tcx::{self, Hook};
use crate::{Error, Result, bpffs};

/// An activity at a port that only one process at a time may have.
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

    /// The pins of ports have names with an `@`, so this is not taken for one.
    fn path_at(self, index: u32) -> PathBuf {
        Path::new(HOME).join(format!("{}-{index}", self.name()))
    }
}

/// The directory of one port. A device's name can recur in another network namespace, and the
/// ifindex of a device in another run of the namespace: the directory carries both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pin {
    pub device: Device,
    /// The port's index at its host; None if a version of vcc pinned it that had none.
    pub index: Option<u32>,
}

impl Pin {
    pub(crate) fn new(device: &Device, index: u32) -> Self {
        Self { device: device.clone(), index: Some(index) }
    }

    /// The BPF file system allows no dots in names, and devices have no colons in theirs.
    fn directory_name(&self) -> String {
        let Device { name, ifindex, netns_inode } = &self.device;
        let index = self.index.map(|index| format!("-{index}")).unwrap_or_default();
        format!("{}@{netns_inode}-{ifindex}{index}", name.replace('.', ":"))
    }

    fn parse(directory_name: &str) -> Option<Self> {
        let (name, place) = directory_name.rsplit_once('@')?;
        let (netns_inode, rest) = place.split_once('-')?;
        let (ifindex, index) = match rest.split_once('-') {
            Some((ifindex, index)) => (ifindex, Some(index.parse().ok()?)),
            None => (rest, None),
        };
        Some(Self {
            device: Device {
                name: name.replace(':', "."),
                ifindex: ifindex.parse().ok()?,
                netns_inode: netns_inode.parse().ok()?,
            },
            index,
        })
    }

    /// Whether it is that of a device, by the ifindex: the name may have changed since.
    pub(crate) fn is_at(&self, device: &Device) -> bool {
        let place = |device: &Device| (device.ifindex, device.netns_inode);
        place(&self.device) == place(device)
    }

    /// Whether both devices are one guest's.
    pub(crate) fn is_sibling_of(&self, other: &Self) -> bool {
        self.index.is_some() && self.index == other.index && !self.is_at(&other.device)
    }

    /// The device's, which may have been renamed. That of another namespace is as it was.
    pub(crate) fn current_name(&self) -> Result<String> {
        let Device { name, ifindex, netns_inode } = &self.device;
        let is_here = *netns_inode == device::netns_inode()?;
        let now = is_here.then(|| device::name_of(*ifindex)).flatten();
        Ok(now.unwrap_or_else(|| name.clone()))
    }

    pub(crate) fn path(&self) -> PathBuf {
        Path::new(HOME).join(self.directory_name())
    }

    /// This is pinned last and removed first: if it exists, the pin is complete.
    fn complete_path(&self) -> PathBuf {
        self.link_path(Hook::ToGuest)
    }

    fn link_path(&self, hook: Hook) -> PathBuf {
        self.path().join(format!("{}_link", hook.program_name()))
    }

    fn program_path(&self, hook: Hook) -> PathBuf {
        self.path().join(hook.program_name())
    }

    /// Pins both links and their programs, or none.
    pub(crate) fn create(
        &self,
        links: &mut [Link; 2],
        programs: [ProgramMut<'_>; 2],
    ) -> Result<()> {
        let path = self.path();
        let failed = |e| Error::system(format!("pin the attachment to `{}`", self.device.name), e);
        fs::create_dir(&path).map_err(|e| failed(e.into()))?;
        let result = self.put_programs(programs).and_then(|()| {
            let mut pinned = links.iter_mut().zip(Hook::BOTH);
            pinned.try_for_each(|(link, hook)| link.pin(self.link_path(hook))).map_err(failed)
        });
        if result.is_err() {
            // The first error is reported; a later sweep removes what is left.
            let _ = self.remove();
        }
        result
    }

    /// Pins the programs that are attached now, in the place of those before. The kernel opens the program of
    /// a link only for CAP_SYS_ADMIN, and a pinned one for everybody who may open the file.
    pub(crate) fn put_programs(&self, programs: [ProgramMut<'_>; 2]) -> Result<()> {
        let doing = || format!("pin the programs of `{}`", self.device.name);
        for (mut program, hook) in programs.into_iter().zip(Hook::BOTH) {
            let path = self.program_path(hook);
            remove_if_there(&path).map_err(|e| Error::system(doing(), e))?;
            program.pin(&path).map_err(|e| Error::system(doing(), e))?;
        }
        Ok(())
    }

    /// False if a version of vcc pinned it that pinned no programs.
    pub(crate) fn has_programs(&self) -> bool {
        Hook::BOTH.iter().all(|hook| self.program_path(*hook).exists())
    }

    pub(crate) fn open_program(&self, hook: Hook) -> Result<OwnedFd> {
        Program::fd_from_pinned_path(self.program_path(hook)).map_err(|e| self.cannot_open(e))
    }

    pub(crate) fn open_links(&self) -> Result<[Link; 2]> {
        let open = |hook| Link::open(self.link_path(hook)).map_err(|e| self.cannot_open(e));
        Ok([open(Hook::FromGuest)?, open(Hook::ToGuest)?])
    }

    /// Whether these links are what is pinned here, and not another attachment to the same device.
    pub(crate) fn is_of(&self, links: &[Link; 2]) -> bool {
        let id = |link: &Link| link.info().map(|info| info.id).ok();
        let pinned = self.open_links().ok();
        pinned.is_some_and(|pinned| id(&pinned[0]).is_some() && id(&pinned[0]) == id(&links[0]))
    }

    /// Takes a role until the lock is dropped or the process ends; None if another process has it, at
    /// this or another device of the guest.
    pub(crate) fn take(&self, role: Role) -> Result<Option<Lock>> {
        let doing = || format!("lock what is pinned for `{}`", self.device.name);
        let path = match self.index {
            Some(index) => role.path_at(index),
            None => self.path().join(role.name()),
        };
        Lock::take(&path).map_err(|e| Error::system(doing(), e))
    }

    /// Likewise, but waits a moment for a process that only ends what a killed one has left.
    pub(crate) fn take_soon(&self, role: Role) -> Result<Option<Lock>> {
        const LOOKS: u32 = 100;
        const LOOK: Duration = Duration::from_millis(5);
        for _ in 0..LOOKS {
            if let Some(lock) = self.take(role)? {
                return Ok(Some(lock));
            }
            thread::sleep(LOOK);
        }
        Ok(None)
    }

    fn cannot_open(&self, error: libbpf_rs::Error) -> Error {
        Error::system(format!("open what is pinned for `{}`", self.device.name), error)
    }

    /// False while the pin is being created or removed, and if the process that did so died half
    /// way.
    pub(crate) fn is_complete(&self) -> bool {
        self.complete_path().exists()
    }

    /// Whether the device has gone, or the process that created the pin died half way.
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
            remove_if_there(&self.complete_path())?;
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

pub(crate) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// All pins, in the order of their names.
pub(crate) fn all() -> Result<Vec<Pin>> {
    let mut pins = read()?;
    pins.sort_by_cached_key(Pin::directory_name);
    Ok(pins)
}

/// Likewise, in no order, which takes half the time.
fn read() -> Result<Vec<Pin>> {
    if !bpffs::has_home()? {
        bpffs::require_lasting()?;
        return Ok(Vec::new());
    }
    let failed = |e| Error::system(format!("read {HOME}"), e);
    let mut pins = Vec::new();
    for entry in fs::read_dir(HOME).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        pins.extend(name.to_str().and_then(Pin::parse));
    }
    Ok(pins)
}

pub(crate) fn is_empty() -> Result<bool> {
    Ok(read()?.is_empty())
}

/// The indices of all ports. Devices of one guest have one.
pub(crate) fn indices() -> Result<BTreeSet<u32>> {
    Ok(read()?.into_iter().filter_map(|pin| pin.index).collect())
}

/// Those of each guest's devices.
pub(crate) fn by_index(pins: &[Pin]) -> HashMap<u32, Vec<&Pin>> {
    let mut of_guests: HashMap<u32, Vec<&Pin>> = HashMap::new();
    for pin in pins {
        if let Some(index) = pin.index {
            of_guests.entry(index).or_default().push(pin);
        }
    }
    of_guests
}

/// The pin of a device.
pub(crate) fn find(device: &Device) -> Result<Option<Pin>> {
    Ok(read()?.into_iter().find(|pin| pin.is_at(device)))
}

/// Removes what is left of roles at a port that nobody has any more. The caller holds the lock.
pub(crate) fn remove_roles(index: u32) -> Result<()> {
    for path in [Role::Tracing, Role::Emitting].map(|role| role.path_at(index)) {
        match fs::remove_dir(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                return Err(Error::system(format!("remove {}", path.display()), e));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether no other device of the guest has a pin. The caller holds the lock.
pub(crate) fn is_last(pin: &Pin) -> Result<bool> {
    Ok(!read()?.iter().any(|other| other.is_sibling_of(pin)))
}

/// Whether what is pinned for a device is attached to it.
pub(crate) fn is_attached(device: &Device) -> Result<bool> {
    let Some(pin) = find(device)? else { return Ok(false) };
    Ok(pin.is_complete() && !pin.is_stale()?)
}

/// Removes the pins of devices that have gone, the last one of a guest after a call of `last`; returns
/// the devices' names.
pub(crate) fn sweep(last: impl Fn(&Pin)) -> Result<Vec<String>> {
    if is_empty()? {
        return Ok(Vec::new());
    }
    let _lock = lock::pins()?;
    let mut gone = Vec::new();
    for pin in all()? {
        if pin.is_stale()? {
            if is_last(&pin)? {
                last(&pin);
            }
            pin.remove()?;
            gone.push(pin.device.name);
        }
    }
    Ok(gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_names_lead_back_to_the_device() {
        for name in ["vnet0", "eth0.100", "a@b-1", "x-1"] {
            let device = Device { name: name.into(), ifindex: 7, netns_inode: 4_026_531_840 };
            let directory_name = Pin::new(&device, 4095).directory_name();
            assert!(!directory_name.contains('.'), "{directory_name}");
            assert_eq!(Pin::parse(&directory_name), Some(Pin::new(&device, 4095)));
        }
    }

    #[test]
    fn older_versions_had_no_index() {
        let pin = Pin::parse("vnet0@1-2").expect("a pin");
        assert_eq!((pin.device.ifindex, pin.index), (2, None));
        assert_eq!(pin.directory_name(), "vnet0@1-2");
    }

    #[test]
    fn foreign_directories_are_no_pins() {
        for name in ["globals", "vnet0@", "vnet0@1", "vnet0@1-x", "vnet0@1-2-x", "@"] {
            assert_eq!(Pin::parse(name), None, "{name}");
        }
    }
}
