//! A device that vcc is attached to. Devices of one guest have one seat.

mod attach;
mod detach;
mod join;
mod pinned;
mod renew;
mod sessions;

pub(crate) use attach::{refusal, require_unattached};

use std::collections::HashMap;
use std::sync::Arc;

use libbpf_rs::{Link, ProgramMut};
use vcc_engine::{Delays, Mode, Params, sys};
use vcc_policy::Tunnels;

use crate::arrival::Origin;
use crate::clock::now_s;
use crate::device::{self, Device};
use crate::host::Host;
use crate::maps::Maps;
use crate::pins::Pin;
use crate::sweep::Sweep;
use crate::tcx::{self, Beside, Hook};
use crate::{
    Arrived, Counters, Error, Flow, FlowId, Result, RunTime, RunTimeByDirection, SharedPolicy,
    Usage, counts, flows, params, run_time, usage,
};

/// An attachment. Unless it is pinned, dropping it detaches.
pub struct Port {
    device: Device,
    links: [Link; 2],
    /// None if another version of vcc attached the port.
    seat: Option<Arc<Seat>>,
    pin: Option<Pin>,
    /// The names of the other devices of the guest, as of when it was opened.
    others: Vec<String>,
    /// See [`Self::shown_at`].
    shown_at: Option<String>,
}

/// A port's place among those of its host, which all devices of a guest have together.
struct Seat {
    host: Arc<Host>,
    index: u32,
    /// Another port has the index if it has another generation.
    generation: u32,
}

impl Seat {
    /// None if another port has the index by now.
    fn port(&self) -> Result<Option<vcc_engine::sys::vcc_port>> {
        let port = params::read(&self.host.maps.ports, self.index)?;
        Ok(Some(port).filter(|port| port.generation == self.generation))
    }

    fn leave(&self) -> Result<u32> {
        self.host.leave(self.index)
    }
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
        Ok(self.settings()?.flows_max)
    }

    /// The tunnels whose inner connections are translated, too.
    pub fn inside(&self) -> Result<Tunnels> {
        Ok(Tunnels::from_bits(self.settings()?.inside))
    }

    /// How full the flow table is, without reading it.
    pub fn usage(&self) -> Result<Usage> {
        usage::read(&self.maps()?.usage, self.seat()?.index)
    }

    pub fn flows(&self) -> Result<Vec<Flow>> {
        flows::read(&self.maps()?.flows, self.seat()?.index)
    }

    /// The flows of each of these ports; see [`Self::each_flow_of`].
    pub fn flows_of_all(ports: &[&Self]) -> Result<Vec<Vec<Flow>>> {
        let mut flows = vec![Vec::new(); ports.len()];
        Self::each_flow_of(ports, |place, flow| flows[place].push(flow.clone()))?;
        Ok(flows)
    }

    /// Visits the flows of these ports, with the port's place among them. The ports of a host share
    /// a table, which is read once. None of a port that another version of vcc attached.
    pub fn each_flow_of(ports: &[&Self], mut visit: impl FnMut(usize, &Flow)) -> Result<()> {
        let mut hosts: Vec<(&Host, HashMap<u32, usize>)> = Vec::new();
        for (place, port) in ports.iter().enumerate() {
            let Some(seat) = &port.seat else { continue };
            if port.usage()?.flows == 0 {
                continue;
            }
            match hosts.iter_mut().find(|(host, _)| std::ptr::eq(*host, &*seat.host)) {
                // Of a guest's devices, the first that is listed has its flows.
                Some((_, places)) => drop(places.entry(seat.index).or_insert(place)),
                None => hosts.push((&seat.host, HashMap::from([(seat.index, place)]))),
            }
        }
        for (host, places) in hosts {
            flows::each(&host.maps.flows, |index, flow| {
                if let Some(place) = places.get(&index) {
                    visit(*place, &flow());
                }
            })?;
        }
        Ok(())
    }

    /// One connection; None if the port does not know it.
    pub fn flow(&self, id: &FlowId) -> Result<Option<Flow>> {
        let table = flows::Table::from_maps(self.maps()?)?;
        let state = table.look_up(&id.key(self.seat()?.index))?;
        Ok(state.map(|state| Flow::new(*id, state)))
    }

    /// Whether the device is in the calling thread's network namespace.
    pub fn is_here(&self) -> Result<bool> {
        Ok(self.device.netns_inode == device::netns_inode()?)
    }

    /// Whether the calling thread's network namespace has a device with the port's ifindex.
    pub fn has_device(&self) -> bool {
        device::exists(self.device.ifindex)
    }

    /// Whether the device has come back to the calling thread's network namespace. Its ifindex
    /// alone does not show it: another device may have got it meanwhile.
    pub fn is_back(&self) -> Result<bool> {
        let failed = |e| Error::system("read what is attached", e);
        let ours = self.links[0].info().map_err(|e| Error::system("read an attachment", e))?;
        let here = tcx::attached(self.device.ifindex, Hook::FromGuest).map_err(failed)?;
        Ok(here.program_ids.contains(&ours.prog_id))
    }

    pub fn counters(&self) -> Result<Counters> {
        counts::counters(&self.maps()?.counts, self.seat()?.index)
    }

    pub fn delays(&self) -> Result<Delays> {
        counts::delays(&self.maps()?.counts, self.seat()?.index)
    }

    /// Frames that the fast path has handed on to the whole engine, from the guest and to it. Of all devices
    /// of the port.
    pub fn handed_on(&self) -> Result<[u64; 2]> {
        counts::handed_on(&self.maps()?.counts, self.seat()?.index)
    }

    /// The run time of both programs together; see [`Self::run_time_by_direction`].
    pub fn run_time(&self) -> Result<RunTime> {
        let RunTimeByDirection { from_guest, to_guest } = self.run_time_by_direction()?;
        Ok(from_guest + to_guest)
    }

    /// The run time of the programs, while somebody had the kernel count it; see [`crate::RunTimes`].
    /// Requires CAP_SYS_ADMIN, unless the port is pinned.
    pub fn run_time_by_direction(&self) -> Result<RunTimeByDirection> {
        let time = |link: &Link, hook| {
            let info = link.info().map_err(|e| Error::system("read an attachment", e))?;
            let pinned = self.pin.as_ref().and_then(|pin| pin.open_program(hook).ok());
            run_time::of_program(info.prog_id, pinned)
        };
        let [from_guest, to_guest] = &self.links;
        let [from_guest, to_guest] =
            [time(from_guest, Hook::FromGuest)?, time(to_guest, Hook::ToGuest)?];
        Ok(RunTimeByDirection { from_guest, to_guest })
    }

    /// The kernel's memory of the tables of all ports of its host.
    pub fn tables_bytes(&self) -> Result<u64> {
        self.seat()?.host.tables_bytes()
    }

    /// Attaches another program beside that of the port.
    pub(crate) fn attach_beside(
        &self,
        program: &ProgramMut<'_>,
        hook: Hook,
        beside: Beside,
    ) -> Result<Link> {
        let [from_guest, to_guest] = &self.links;
        let ours = match hook {
            Hook::FromGuest => from_guest,
            Hook::ToGuest => to_guest,
        };
        tcx::attach_beside(program, self.device.ifindex, beside, ours).map_err(|e| {
            match e.raw_os_error() {
                Some(libc::ENOENT) => self.not_attached(),
                _ => refusal(&self.device, e),
            }
        })
    }

    pub fn params(&self) -> Result<Params> {
        Ok(params::from_port(&self.settings()?))
    }

    /// The seconds until data from the guest is dropped whose connection the port does not know; 0: it is
    /// dropped, None: it passes. Where rules differ, that of the rule that drops it last. `policy`: the
    /// one that the port may be under.
    pub fn unknown_dropped_in_s(&self, policy: Option<&SharedPolicy>) -> Result<Option<u32>> {
        let settings = self.settings()?;
        let treatments = self.treatments(&settings, policy)?;
        if settings.params.mode == Mode::Drain.number() {
            return Ok(None);
        }
        let left_s = |it: &Params| it.unknown_grace_left_s(settings.attached_s, now_s());
        Ok(treatments.iter().filter_map(left_s).max())
    }

    /// May ACKs to the guest have to wait, for windows below one segment? `policy`: as above.
    pub fn may_pace_acks(&self, policy: Option<&SharedPolicy>) -> Result<bool> {
        let treatments = self.treatments(&self.settings()?, policy)?;
        Ok(treatments.iter().any(Params::paces_acks))
    }

    /// Of its connections.
    fn treatments(
        &self,
        settings: &sys::vcc_port,
        policy: Option<&SharedPolicy>,
    ) -> Result<Vec<Params>> {
        match policy {
            Some(policy) if settings.by_policy != 0 => policy.rules_of_port(self.seat()?.index),
            _ if settings.by_policy != 0 => Ok(Vec::new()),
            _ => Ok(vec![params::from_port(settings)]),
        }
    }

    pub fn set_mode(&self, mode: Mode) -> Result<()> {
        self.change_params(|params| params.0.mode = mode.number())
    }

    /// Changes the treatment of all connections, of those that it has as well. What their handshake has
    /// agreed on stays. Returns how many connections follow.
    ///
    /// Of a port without a policy: rules have their own parameters.
    pub fn set_params(&self, params: Params) -> Result<u32> {
        self.change(|port| {
            let before = port.params;
            port.params = sys::vcc_params { trace: before.trace, ..params.0 };
            let since_s = Params(before).rejects_unknown().then_some(before.policed_s);
            port.params.policed_s = params.policed_since_s(false, since_s, now_s());
        })?;
        self.visit(Sweep::Settle)
    }

    /// Takes new connections inside these tunnels. Those that are known continue, translated,
    /// inside any tunnel.
    pub fn set_inside(&self, tunnels: Tunnels) -> Result<()> {
        self.change(|port| params::look_into(port, tunnels))
    }

    fn change_params(&self, change: impl FnOnce(&mut Params)) -> Result<()> {
        self.change(|port| {
            let mut params = params::from_port(port);
            change(&mut params);
            port.params = params.0;
        })
    }

    fn change(&self, change: impl FnOnce(&mut sys::vcc_port)) -> Result<()> {
        let Seat { host, index, generation } = self.seat()?;
        let of = params::Of { ports: &host.maps.ports, index: *index, generation: *generation };
        let changed = of.change(self.pin.is_some(), change)?;
        if changed { Ok(()) } else { Err(self.not_attached()) }
    }

    /// It was detached, and its index is another port's.
    fn not_attached(&self) -> Error {
        Error::NotAttached { device: self.device.name.clone() }
    }

    /// The port's settings in the datapath.
    fn settings(&self) -> Result<sys::vcc_port> {
        self.seat()?.port()?.ok_or_else(|| self.not_attached())
    }

    /// The index among the ports of the policy; None if it was attached without a policy.
    pub fn index(&self) -> Result<Option<u32>> {
        Ok((self.settings()?.by_policy != 0).then_some(self.seat()?.index))
    }

    /// Brings every flow under the edition of the policy that is in force. Flows in their handshake
    /// follow when it has ended. Returns how many flows there are.
    pub fn judge_flows(&self) -> Result<u32> {
        self.visit(Sweep::Judge)
    }

    /// Like [`Self::judge_flows`], but for flows in their handshake too. Required before another
    /// edition overwrites the previous one: see [`crate::SharedPolicy::apply`].
    pub fn settle_flows(&self) -> Result<u32> {
        self.visit(Sweep::Settle)
    }

    /// Takes over connections that come to the port with its guest, as another host has described
    /// them. Those of which the port knows more stay as they are.
    pub fn take_over(&self, flows: &[Flow]) -> Result<Vec<Arrived>> {
        let seat = self.seat()?;
        seat.port()?.ok_or_else(|| self.not_attached())?;
        seat.host.arrive(seat.index, flows, Origin::OtherHost)
    }

    /// Forgets every flow, and returns what it holds of a pool. For a port whose device has gone.
    pub fn forget_flows(&self) -> Result<u32> {
        self.visit(Sweep::Forget)
    }

    fn visit(&self, what: Sweep) -> Result<u32> {
        let seat = self.seat()?;
        seat.port()?.ok_or_else(|| self.not_attached())?;
        seat.host.sweep(seat.index, what)
    }

    fn maps(&self) -> Result<&Maps> {
        Ok(&self.seat()?.host.maps)
    }

    fn seat(&self) -> Result<&Seat> {
        self.seat.as_deref().ok_or_else(|| other_version(&self.device))
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
            // Flows may hold a part of a policy's pools.
            let _ = self.last_seat().map(|seat| seat.leave());
        }
    }
}

#[cfg(test)]
mod tests;
