//! The host's programs and maps in the BPF file system, where they outlive the command.
//!
//! The links of ports alone do not suffice: the kernel cancels the timers of a map, and empties an
//! array of programs, when user space no longer holds it, although programs still use it.

use std::cell::Cell;
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use libbpf_rs::{ErrorKind, MapHandle, Program as BpfProgram, libbpf_sys};

use super::{Host, Programs, Room, Tags, load};
use vcc_engine::sys;

use crate::maps::{self, CONSTANTS, Maps};
use crate::pins::{self, remove_if_there};
use crate::sweep::Sweep;
use crate::tcx::Hook;
use crate::{Error, Governor, Program, Result, SharedPolicy, Underlays, bpffs, capabilities, lock};

/// The pins of ports have names with an `@`, so this is not taken for one.
pub(crate) const PLACE: &str = "/sys/fs/bpf/vcc/host";
/// Of a host that is about to replace another version's. Where there is one of a process that was
/// killed, which ports may call, the name continues with a number.
pub(crate) const NEXT: &str = "/sys/fs/bpf/vcc/host-next";
/// As many attempts may be killed, each of which leaves some 55 MiB.
const NEXTS_MAX: usize = 8;
/// The pin that describes where everything is in the maps.
pub(crate) const LAYOUT: &str = "layout";
/// A pin of each version.
pub(crate) const FROM_GUEST: &str = Hook::FromGuest.whole_program_name();

impl Host {
    /// The pinned one, or a new one, which is pinned.
    pub fn open() -> Result<Arc<Self>> {
        require_capabilities()?;
        let _lock = lock::pins()?;
        Self::open_locked()
    }

    /// Likewise; the caller holds the lock, without which another command could remove a host that
    /// has no port yet.
    pub(crate) fn open_locked() -> Result<Arc<Self>> {
        let is_new = !SharedPolicy::is_there();
        let policy = SharedPolicy::open_locked()?;
        let opened = Self::find_or_create(&policy);
        if opened.is_err() && is_new {
            // The first error is reported.
            let _ = SharedPolicy::remove_unapplied();
        }
        opened
    }

    /// The caller holds the lock.
    fn find_or_create(policy: &SharedPolicy) -> Result<Arc<Self>> {
        match Self::find()? {
            Found::Ours(host) => return Ok(host),
            // Its ports call programs that are not there any more, or another version's.
            Found::OtherVersion | Found::None if !pins::indices()?.is_empty() => {
                return Err(Error::OtherHostVersion);
            }
            Found::OtherVersion | Found::None => {}
        }
        // Pins that are unused, or were left by a process that died half way.
        remove()?;
        let underlays = Underlays::pinned()?;
        let (mut host, _) = Self::load_with(Some(policy), Room::OF_HOST, false, &underlays)?;
        host.pin_at(Path::new(PLACE))?;
        host.is_pinned = true;
        Ok(Arc::new(host))
    }

    pub(crate) fn find() -> Result<Found> {
        if !Self::is_there() {
            return Ok(Found::None);
        }
        let foreign = Cell::new(false);
        let place = Path::new(PLACE);
        let failed = |name: &str, e: libbpf_rs::Error| {
            foreign.set(foreign.get() || e.kind() == ErrorKind::NotFound);
            Error::system(format!("open {}", place.join(name).display()), e)
        };
        let programs = Programs::each(|name| {
            BpfProgram::fd_from_pinned_path(place.join(name)).map_err(|e| failed(name, e))
        });
        let maps = Maps::open(|name| {
            MapHandle::from_pinned_path(place.join(name)).map_err(|e| failed(name, e))
        });
        match (programs, maps) {
            (Ok(programs), Ok(maps)) if maps.are_understood() => {
                let (is_pinned, is_new) = (true, false);
                Ok(Found::Ours(Arc::new(Self { maps, programs, is_pinned, is_new, turning: None })))
            }
            (Ok(_), Ok(_)) => Ok(Found::OtherVersion),
            _ if foreign.get() => Ok(Found::OtherVersion),
            (Err(error), _) | (_, Err(error)) => Err(error),
        }
    }

    pub(crate) fn is_there() -> bool {
        is_complete(Path::new(PLACE))
    }

    /// Pins all of it, or nothing.
    pub(crate) fn pin_at(&self, place: &Path) -> Result<()> {
        let pinned = self.pin_each(place);
        if pinned.is_err() {
            // The first error is reported.
            let _ = remove_at(place);
        }
        pinned
    }

    fn pin_each(&self, place: &Path) -> Result<()> {
        const DOING: &str = "pin the datapath";
        fs::create_dir(place).map_err(|e| Error::system(DOING, e))?;
        load::layout()?.pin(&place.join(LAYOUT))?;
        let maps = self.maps.all().map(|(name, map)| (name, map.as_fd()));
        for (name, fd) in maps.chain(self.programs.all()) {
            pin(fd, &place.join(name)).map_err(|e| Error::system(DOING, e))?;
        }
        Ok(())
    }

    /// Makes all ports of a pinned host call the programs of this version of vcc; flows stay. An
    /// error before the first program was replaced changes nothing. Returns the host, and whether
    /// programs were replaced.
    pub fn take_over(self: Arc<Self>) -> Result<(Arc<Self>, bool)> {
        // To compare them, the verifier would read them all once more.
        if self.is_new {
            return Ok((self, false));
        }
        self.take_over_if(|running, ours| running != ours)
    }

    pub(crate) fn take_over_if(
        self: Arc<Self>,
        is_stale: impl Fn(Tags, Tags) -> bool,
    ) -> Result<(Arc<Self>, bool)> {
        let _lock = lock::pins()?;
        self.take_over_locked(is_stale)
    }

    /// Likewise; the caller holds the lock.
    pub(crate) fn take_over_locked(
        self: Arc<Self>,
        is_stale: impl Fn(Tags, Tags) -> bool,
    ) -> Result<(Arc<Self>, bool)> {
        // Of a version that had the same layout and did not say so.
        let layout = Path::new(PLACE).join(LAYOUT);
        if self.is_pinned && !layout.exists() {
            load::layout()?.pin(&layout)?;
        }
        let ours = self.reloaded(&Underlays::pinned()?)?;
        if !is_stale(self.programs.tags()?, ours.programs.tags()?) {
            // A process that was killed may have left the timers to earlier programs.
            self.renew_ports()?;
            return Ok((self, false));
        }
        ours.put_in_force()?;
        Ok((Arc::new(ours), true))
    }

    /// Programs of this version of vcc with these underlays, over the host's maps. Nothing calls them
    /// yet. The caller holds the lock.
    pub(crate) fn reloaded(&self, underlays: &Underlays) -> Result<Self> {
        let policy = SharedPolicy::open_locked()?;
        let object = load::over(&self.maps, Some(&policy), underlays)?;
        let (maps, programs) = (Maps::from_object(&object)?, Programs::from_object(&object)?);
        Ok(Self { maps, programs, is_pinned: true, is_new: false, turning: None })
    }

    /// Makes all ports call these programs instead of those before. The caller holds the lock.
    pub(crate) fn put_in_force(&self) -> Result<()> {
        self.call()?;
        for (name, program) in self.programs.all() {
            replace_pin(program, name)?;
        }
        self.renew_ports()
    }

    /// Pins a program in another's place, so that the next process that takes the host over finds
    /// other programs than its own, as after an upgrade, and replaces them.
    pub fn make_stale(&self) -> Result<()> {
        let _lock = lock::pins()?;
        replace_pin(self.programs.get(FROM_GUEST), Program::Sweep.name())
    }

    /// Makes what is pinned look like that of a version with another layout of maps, in which everything
    /// has the place that it has here. Not `described`: of one that has not pinned its layout either, and
    /// had fewer programs.
    pub fn make_foreign(described: bool) -> Result<()> {
        let _lock = lock::pins()?;
        let place = Path::new(PLACE);
        say_layout(place, sys::LAYOUT_VERSION + 1)?;
        if !described {
            let [from_guest, to_guest] = Hook::BOTH.map(Hook::whole_program_name);
            let kept = [from_guest, to_guest, Program::Sweep.name()];
            let lacking = Programs::NAMES.into_iter().filter(|name| !kept.contains(name));
            for name in lacking.chain([LAYOUT]) {
                let removed = remove_if_there(&place.join(name));
                removed.map_err(|e| Error::system(format!("remove {name}"), e))?;
            }
        }
        SharedPolicy::say_layout(sys::LAYOUT_VERSION + 1)
    }

    fn renew_ports(&self) -> Result<()> {
        for index in pins::indices()? {
            self.renew_wheel(index)?;
            self.sweep(index, Sweep::Judge)?;
        }
        Ok(())
    }

    /// Removes what is pinned for a host without ports, unless a process keeps ports under a
    /// policy. Pools and policy of such a process stay.
    pub fn remove_unused() -> Result<()> {
        if !Path::new(PLACE).exists() {
            return Ok(());
        }
        let _lock = lock::pins()?;
        Self::remove_unused_locked()
    }

    pub(crate) fn remove_unused_locked() -> Result<()> {
        if !Path::new(PLACE).exists() || !pins::is_empty()? || Governor::is_there()? {
            return Ok(());
        }
        remove()?;
        SharedPolicy::remove_unapplied()
    }
}

/// A program of a pinned host, as it is pinned now.
pub(super) fn program(is_pinned: bool, program: Program) -> Option<OwnedFd> {
    let path = Path::new(PLACE).join(program.name());
    is_pinned.then(|| BpfProgram::fd_from_pinned_path(path).ok()).flatten()
}

/// Lets the maps that are pinned at a place be of that layout.
pub(crate) fn say_layout(place: &Path, layout: u32) -> Result<()> {
    let constants = place.join(CONSTANTS);
    let map = MapHandle::from_pinned_path(&constants)
        .map_err(|e| Error::system(format!("open {}", constants.display()), e))?;
    let current = maps::constants_of(&map).ok_or_else(|| Error::layout("read the limits"))?;
    maps::replace_constants(&constants, &sys::vcc_host_constants { layout, ..current })
}

pub(crate) enum Found {
    Ours(Arc<Host>),
    OtherVersion,
    None,
}

/// The program that is pinned last: if it is there, all is. Each version has it.
const LAST: &str = Program::Sweep.name();

/// Whether a host is pinned at `place` as a whole. No port calls one that is not.
fn is_complete(place: &Path) -> bool {
    place.join(LAST).exists()
}

/// Where hosts are pinned that were about to take the place of another version's, and whether ports may
/// call them.
pub(crate) fn nexts() -> Result<Vec<(PathBuf, bool)>> {
    if !bpffs::has_home()? {
        return Ok(Vec::new());
    }
    let there = (1..=NEXTS_MAX).map(next).filter(|place| place.exists());
    Ok(there.map(|place| (place.clone(), is_complete(&place))).collect())
}

fn next(number: usize) -> PathBuf {
    if number == 1 { NEXT.into() } else { format!("{NEXT}-{number}").into() }
}

/// Where the next one can be pinned.
pub(crate) fn free_next() -> Result<PathBuf> {
    (1..=NEXTS_MAX).map(next).find(|place| !place.exists()).ok_or_else(|| Error::System {
        doing: "pin the datapath beside another version's".into(),
        why: format!(
            "{NEXTS_MAX} attempts were ended before they had moved all ports, and their datapaths are still \
             there: `vcc detach --now --all`, then start again"
        ),
    })
}

/// Pins a map or a program.
fn pin(object: BorrowedFd<'_>, path: &Path) -> libbpf_rs::Result<()> {
    let c_path = CString::new(path.as_os_str().as_encoded_bytes())
        .map_err(|e| libbpf_rs::Error::from(io::Error::from(e)))?;
    // SAFETY: an open descriptor, and a string that ends in NUL and outlives the call.
    let status = unsafe { libbpf_sys::bpf_obj_pin(object.as_raw_fd(), c_path.as_ptr()) };
    if status < 0 {
        return Err(libbpf_rs::Error::from_raw_os_error(-status));
    }
    Ok(())
}

/// In one step: whoever opens it finds the one or the other.
fn replace_pin(program: BorrowedFd<'_>, name: &str) -> Result<()> {
    let place = Path::new(PLACE);
    let next = place.join(format!("{name}-next"));
    let replace = || -> libbpf_rs::Result<()> {
        // Of a process that died half way.
        remove_if_there(&next)?;
        pin(program, &next)?;
        Ok(fs::rename(&next, place.join(name))?)
    };
    replace().map_err(|e| Error::system("replace the programs of this host", e))
}

/// Reported before other lacks of privilege, such as to mount the BPF file system.
pub(crate) fn require_capabilities() -> Result<()> {
    if capabilities::missing().is_empty() {
        return Ok(());
    }
    let (doing, why) = ("load the datapath".into(), capabilities::why_refused());
    Err(Error::NotPermitted { doing, why })
}

/// Removes all hosts. No port may call them any more.
pub(crate) fn remove() -> Result<()> {
    for (place, _) in nexts()? {
        remove_at(&place)?;
    }
    remove_at(Path::new(PLACE))
}

/// Removes a host's pins as a whole: first the one that marks it as complete.
pub(crate) fn remove_at(place: &Path) -> Result<()> {
    let remove_all = || {
        remove_if_there(&place.join(LAST))?;
        match fs::read_dir(place) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => {
                for entry in entries? {
                    fs::remove_file(entry?.path())?;
                }
            }
        }
        fs::remove_dir(place)
    };
    remove_all().map_err(|e| Error::system(format!("remove {}", place.display()), e))
}
