//! The programs at a device's TCX hooks.

use crate::device::Device;
use crate::tcx::{self, Hook};
use crate::{Error, RecordedSide, Result, pins};

/// The programs at a hook, in the order in which they run.
pub(crate) struct Chain {
    pub hook: Hook,
    pub programs: Vec<Attached>,
    /// The place of vcc's among them.
    pub ours: Option<usize>,
}

#[derive(Clone)]
pub(crate) struct Attached {
    pub id: u32,
    /// None without CAP_SYS_ADMIN.
    pub name: Option<String>,
}

impl Chain {
    pub(super) fn both(device: &Device) -> Result<[Self; 2]> {
        let links = match pins::find(device)?.filter(pins::Pin::is_complete) {
            Some(pin) => Some(pin.open_links()?),
            None => None,
        };
        let [from_guest, to_guest] = Hook::BOTH.map(|hook| {
            let pinned = links.as_ref().and_then(|links| links[hook as usize].info().ok());
            Self::read(device, hook, pinned.map(|info| info.prog_id))
        });
        Ok([from_guest?, to_guest?])
    }

    fn read(device: &Device, hook: Hook, pinned: Option<u32>) -> Result<Self> {
        let doing = || format!("read what is attached to `{}`", device.name);
        let ids = tcx::attached(device.ifindex, hook).map_err(|e| Error::system(doing(), e))?;
        let programs = ids.program_ids.into_iter().map(Attached::from_id);
        // Those of a recording change nothing, and end with it.
        let is_other = |it: &Attached| !it.name.as_deref().is_some_and(RecordedSide::has_program);
        let programs: Vec<Attached> = programs.filter(is_other).collect();
        let names = [hook.program_name(), hook.detour_program_name()];
        let is_ours = |program: &Attached| {
            let name = program.name.as_deref();
            pinned == Some(program.id) || name.is_some_and(|name| names.contains(&name))
        };
        Ok(Self { hook, ours: programs.iter().position(is_ours), programs })
    }

    /// Those that run before vcc, or would.
    pub(crate) fn before(&self) -> &[Attached] {
        &self.programs[..self.ours.unwrap_or(self.programs.len())]
    }

    pub(crate) fn after(&self) -> &[Attached] {
        self.ours.map_or(&[], |ours| &self.programs[ours + 1..])
    }
}

impl Attached {
    pub(crate) fn from_id(id: u32) -> Self {
        Self { id, name: tcx::program_name(id).filter(|name| !name.is_empty()) }
    }
}

impl std::fmt::Display for Attached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name} (ID {})", self.id),
            None => write!(f, "a program with the ID {}", self.id),
        }
    }
}

pub(crate) fn names(programs: &[Attached]) -> String {
    programs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// A hook, and whose segments pass it.
pub(crate) fn place(hook: Hook) -> &'static str {
    match hook {
        Hook::FromGuest => "TCX ingress, from the guest",
        Hook::ToGuest => "TCX egress, to the guest",
    }
}
