//! Facts that several kinds look at: the device, the devices around it, and the programs at its
//! hooks.

mod chain;
pub(super) mod features;
mod link;
pub(super) mod route;
mod sockets;
mod traffic_control;
mod watch;

use std::time::Duration;

pub(super) use chain::{Attached, Chain, names, place};
pub(super) use link::Link;
pub(super) use sockets::PacketSocket;
pub(super) use traffic_control::{
    Action, CLSACT_EGRESS, CLSACT_INGRESS, Filter, Qdisc, TC_H_ROOT, filters,
};
pub(super) use watch::{Sight, Traffic};
#[cfg(test)]
pub(super) use {link::Packets, sockets::Process};

use vcc_policy::Tunnels;

use crate::device::Device;
use crate::tcx::Hook;
use crate::{Error, Port, Result, SharedPolicy};

/// Facts that are read once for several devices.
pub(crate) struct Surroundings {
    /// All devices of the namespace.
    pub links: Vec<Link>,
    /// Of all devices.
    pub qdiscs: Vec<Qdisc>,
}

pub(crate) struct Neighbours<'a> {
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

impl Surroundings {
    pub(crate) fn read() -> Result<Self> {
        let failed = |what: &'static str| move |e| Error::system(what, e);
        Ok(Self {
            links: Link::all().map_err(failed("list the network devices"))?,
            qdiscs: Qdisc::all().map_err(failed("list the qdiscs"))?,
        })
    }
}

impl<'a> Neighbours<'a> {
    pub(crate) fn read(
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

    /// The tunnels that the port looks into; none if vcc is not attached.
    pub(super) fn inside(&self) -> Result<Tunnels> {
        match Port::open(&self.device.name) {
            Ok(port) => port.inside(),
            Err(Error::NotAttached { .. }) => Ok(Tunnels::NONE),
            Err(error) => Err(error),
        }
    }

    /// May ACKs to the guest have to wait? False if vcc is not attached.
    pub(super) fn may_pace_acks(&self) -> Result<bool> {
        match Port::open(&self.device.name) {
            Ok(port) => port.may_pace_acks(SharedPolicy::find()?.as_ref()),
            Err(Error::NotAttached { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn chain(&self, hook: Hook) -> &Chain {
        &self.chains[hook as usize]
    }

    /// The bridge, bond or other device that has this one for a port or member.
    pub(crate) fn master(&self) -> Option<&Link> {
        let index = self.link.master?;
        self.around.links.iter().find(|link| link.index == index)
    }

    /// Those of this device.
    pub(crate) fn qdiscs(&self) -> impl Iterator<Item = &Qdisc> {
        self.around.qdiscs.iter().filter(|qdisc| qdisc.ifindex == self.device.ifindex)
    }

    pub(crate) fn sight(&self, hook: Hook) -> Sight {
        let watched = self.traffic.as_ref().and_then(|traffic| traffic.as_ref().ok());
        watched.map_or(Sight::Part, |traffic| traffic.sight(hook))
    }
}
