//! A device that vcc is attached to.

mod attach;
mod detach;
mod pinned;
mod sessions;
mod take_over;

use std::os::fd::OwnedFd;

use libbpf_rs::{Link, MapCore};
use vcc_engine::{Delays, Mode, Params};

use crate::device::{self, Device};
use crate::maps::Maps;
use crate::pins::Pin;
use crate::sweep::{self, Sweep};
use crate::tcx::{self, Hook};
use crate::{
    Counters, Error, Flow, FlowId, Result, RunTime, Usage, counters, delays, flows, params,
    run_time, usage,
};

/// An attachment. Unless it is pinned, dropping it detaches.
pub struct Port {
    device: Device,
    links: [Link; 2],
    /// None if another version of vcc created them.
    maps: Option<Maps>,
    /// None if another version of vcc did not have this program.
    sweep: Option<OwnedFd>,
    pin: Option<Pin>,
}

impl Port {
    /// False if another process detached it, or the device has gone.
    pub fn is_attached(&self) -> Result<bool> {
        let [from_guest, to_guest] = &self.links;
        Ok(tcx::is_attached(from_guest)? && tcx::is_attached(to_guest)?)
    }

    pub fn device(&self) -> &str {
        &self.device.name
    }

    /// The ifindex in the device's network namespace.
    pub fn ifindex(&self) -> u32 {
        self.device.ifindex
    }

    /// The inode of the device's network namespace.
    pub fn netns_inode(&self) -> u64 {
        self.device.netns_inode
    }

    /// The number of connections that this port tracks at a time.
    pub fn max_flows(&self) -> Result<u32> {
        Ok(self.maps()?.flows.max_entries())
    }

    /// How full the flow table is, without reading it.
    pub fn usage(&self) -> Result<Usage> {
        usage::read(&self.maps()?.usage)
    }

    pub fn flows(&self) -> Result<Vec<Flow>> {
        flows::read(&self.maps()?.flows)
    }

    /// One connection; None if the port does not know it.
    pub fn flow(&self, id: &FlowId) -> Result<Option<Flow>> {
        let state = flows::look_up(&self.maps()?.flows, &id.key())?;
        Ok(state.map(|state| Flow::new(*id, state)))
    }

    /// Whether the device is in the calling thread's network namespace.
    pub fn is_here(&self) -> Result<bool> {
        Ok(self.device.netns_inode == device::netns_inode()?)
    }

    /// Whether the device has come back to the calling thread's network namespace. Its ifindex
    /// alone does not tell: another device may have got it meanwhile.
    pub fn is_back(&self) -> Result<bool> {
        let failed = |e| Error::system("read what is attached", e);
        let ours = self.links[0].info().map_err(|e| Error::system("read an attachment", e))?;
        let here = tcx::attached(self.device.ifindex, Hook::FromGuest).map_err(failed)?;
        Ok(here.program_ids.contains(&ours.prog_id))
    }

    pub fn counters(&self) -> Result<Counters> {
        counters::read(&self.maps()?.counters)
    }

    pub fn delays(&self) -> Result<Delays> {
        delays::read(&self.maps()?.delays)
    }

    /// The run time of both programs, while [`crate::RunTimes`] counted it.
    pub fn run_time(&self) -> Result<RunTime> {
        self.links.iter().try_fold(RunTime::default(), |sum, link| {
            let info = link.info().map_err(|e| Error::system("read an attachment", e))?;
            Ok(sum + run_time::of_program(info.prog_id)?)
        })
    }

    pub fn params(&self) -> Result<Params> {
        params::read(&self.maps()?.params)
    }

    pub fn set_mode(&self, mode: Mode) -> Result<()> {
        self.change_params(|params| params.0.mode = mode.number())
    }

    fn change_params(&self, change: impl FnOnce(&mut Params)) -> Result<()> {
        params::change(&self.maps()?.params, self.pin.is_some(), change)
    }

    /// The index among the ports of the policy; None if it was attached without a policy.
    pub fn index(&self) -> Result<Option<u32>> {
        let constants = self.maps()?.constants().ok_or_else(|| other_version(&self.device))?;
        Ok((constants.by_policy != 0).then_some(constants.index))
    }

    /// Brings every flow under the edition of the policy that is in force. Flows in their handshake
    /// follow when it has ended. Returns how many flows there are.
    pub fn judge_flows(&self) -> Result<u32> {
        sweep::run(self.sweeper()?, Sweep::Judge)
    }

    /// Like [`Self::judge_flows`], but for flows in their handshake too. Required before another
    /// edition overwrites the previous one: see [`crate::SharedPolicy::apply`].
    pub fn settle_flows(&self) -> Result<u32> {
        sweep::run(self.sweeper()?, Sweep::Settle)
    }

    /// Forgets every flow, and returns what it holds of a pool. For a port whose device has gone.
    pub fn forget_flows(&self) -> Result<u32> {
        sweep::run(self.sweeper()?, Sweep::Forget)
    }

    fn sweeper(&self) -> Result<&OwnedFd> {
        self.sweep.as_ref().ok_or_else(|| other_version(&self.device))
    }

    fn maps(&self) -> Result<&Maps> {
        self.maps.as_ref().ok_or_else(|| other_version(&self.device))
    }
}

fn other_version(device: &Device) -> Error {
    Error::OtherVersion { device: device.name.clone() }
}

impl Drop for Port {
    /// Detaches explicitly, because closing our descriptor may not be enough: a child process that
    /// is being forked holds another until it executes its program.
    fn drop(&mut self) {
        if self.pin.is_none() {
            for link in &self.links {
                let _ = link.detach();
            }
        }
    }
}

#[cfg(test)]
mod tests;
