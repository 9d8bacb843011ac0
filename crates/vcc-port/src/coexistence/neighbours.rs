//! What several kinds look at: the device, the devices around it, and the programs at its hooks.

use std::time::Duration;

use super::link::Link;
use super::sockets::{self, PacketSocket};
use super::traffic::{Sight, Traffic};
use super::traffic_control::Qdisc;
use crate::device::Device;
use crate::tcx::{self, Hook};
use crate::{Error, Result, pins};

/// What is read once for several devices.
pub(super) struct Surroundings {
    /// All devices of the namespace.
    pub links: Vec<Link>,
    /// Of all devices.
    pub qdiscs: Vec<Qdisc>,
}

pub(super) struct Neighbours<'a> {
    pub device: Device,
    pub link: Link,
    pub around: &'a Surroundings,
    /// By [`Hook::BOTH`].
    pub chains: [Chain; 2],
    /// Packet sockets that receive from the device.
    pub sockets: Vec<PacketSocket>,
    /// None if nobody watched; an error is the reason why nobody could.
    pub traffic: Option<Result<Traffic>>,
}

/// The programs at a hook, in the order in which they run.
pub(super) struct Chain {
    pub hook: Hook,
    pub programs: Vec<Attached>,
    /// The place of vcc's among them.
    pub ours: Option<usize>,
}

#[derive(Clone)]
pub(super) struct Attached {
    pub id: u32,
    /// None without CAP_SYS_ADMIN.
    pub name: Option<String>,
}

impl Surroundings {
    pub(super) fn read() -> Result<Self> {
        let failed = |what: &'static str| move |e| Error::system(what, e);
        Ok(Self {
            links: Link::all().map_err(failed("list the network devices"))?,
            qdiscs: Qdisc::all().map_err(failed("list the qdiscs"))?,
        })
    }
}

impl<'a> Neighbours<'a> {
    pub(super) fn read(
        device: Device,
        around: &'a Surroundings,
        watch: Option<Duration>,
    ) -> Result<Self> {
        let failed = |e| Error::system(format!("read device `{}`", device.name), e);
        let link = Link::read(device.ifindex).map_err(failed)?;
        let chains = Chain::both(&device)?;
        let traffic = watch.map(|time| Traffic::watch(&device, &chains, time));
        let traffic = traffic.and_then(Result::transpose);
        let sockets = sockets::bound_to(device.ifindex)?;
        Ok(Self { device, link, around, chains, sockets, traffic })
    }

    pub(super) fn chain(&self, hook: Hook) -> &Chain {
        &self.chains[hook as usize]
    }

    /// The bridge, bond or other device that has this one for a port or member.
    pub(super) fn master(&self) -> Option<&Link> {
        let index = self.link.master?;
        self.around.links.iter().find(|link| link.index == index)
    }

    /// Those of this device.
    pub(super) fn qdiscs(&self) -> impl Iterator<Item = &Qdisc> {
        self.around.qdiscs.iter().filter(|qdisc| qdisc.ifindex == self.device.ifindex)
    }

    pub(super) fn sight(&self, hook: Hook) -> Sight {
        let watched = self.traffic.as_ref().and_then(|traffic| traffic.as_ref().ok());
        watched.map_or(Sight::Part, |traffic| traffic.sight(hook))
    }
}

impl Chain {
    fn both(device: &Device) -> Result<[Self; 2]> {
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
        let programs: Vec<Attached> = ids.program_ids.into_iter().map(Attached::of).collect();
        let is_ours = |program: &Attached| {
            pinned == Some(program.id) || program.name.as_deref() == Some(hook.program_name())
        };
        Ok(Self { hook, ours: programs.iter().position(is_ours), programs })
    }

    /// Those that run before vcc, or would.
    pub(super) fn before(&self) -> &[Attached] {
        &self.programs[..self.ours.unwrap_or(self.programs.len())]
    }

    pub(super) fn after(&self) -> &[Attached] {
        self.ours.map_or(&[], |ours| &self.programs[ours + 1..])
    }
}

impl Attached {
    pub(super) fn of(id: u32) -> Self {
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

pub(super) fn names(programs: &[Attached]) -> String {
    programs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// A hook, and whose segments pass it.
pub(super) fn place(hook: Hook) -> &'static str {
    match hook {
        Hook::FromGuest => "TCX ingress, from the guest",
        Hook::ToGuest => "TCX egress, to the guest",
    }
}
