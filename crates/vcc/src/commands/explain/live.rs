//! The connection at the ports here.

use vcc_command::output;
use vcc_engine::sys;
use vcc_policy::{Connection, Role};
use vcc_port::{Error, Flow, FlowId, SharedPolicy};
use vcc_view::{
    CpuWatch, FlowView, Place, READ_EVERY, RulesInForce, Source, is_delayed_by_guest, keys,
    view_flows,
};

use super::Arguments;
use crate::commands::tenants::Tenants;
use crate::interrupt;

pub(super) struct Live {
    pub flow: FlowView,
    /// The port's among those of the policy in the kernel.
    pub index: Option<u32>,
    pub is_of_domain: bool,
}

impl Live {
    /// Devices of several network namespaces may have the same name.
    pub(super) fn find(arguments: &Arguments) -> Result<Vec<Self>, Error> {
        let ports = Source::list()?;
        let rules = RulesInForce::read(SharedPolicy::find()?.as_ref())?;
        let find = |role: Role| find(arguments, role, &ports, &rules);
        let mut found = match arguments.role {
            Some(role) => find(role.into())?,
            // The first address may be that of a peer that has opened the connection.
            None => match find(Role::Client)? {
                none if none.is_empty() => {
                    let mut swapped = find(Role::Server)?;
                    swapped.retain(|flow| role(flow) == Role::Server);
                    swapped
                }
                found => found,
            },
        };
        watch_cpus(&ports, &mut found);
        Tenants::ask().name(&mut found);
        let live = |flow: FlowView| {
            let port = &ports[flow.port_index];
            let is_of_domain = matches!(port, Source::Domain(_));
            Ok(Self { index: port.index()?, is_of_domain, flow })
        };
        found.into_iter().map(live).collect()
    }

    /// With the role that the connection has, unless another is asked for.
    pub(super) fn connection(&self, arguments: &Arguments) -> Connection {
        let id = self.flow.id();
        let role = arguments.role.map_or_else(|| role(&self.flow), Role::from);
        Connection { guest: id.guest, peer: id.peer, role, ..arguments.connection(role) }
    }
}

/// The guest's.
fn role(flow: &FlowView) -> Role {
    if flow.state.has(sys::FLOW_GUEST_OPENED) { Role::Client } else { Role::Server }
}

fn find(
    arguments: &Arguments,
    role: Role,
    ports: &[Source],
    rules: &RulesInForce,
) -> Result<Vec<FlowView>, Error> {
    let Connection { guest, peer, vlan, .. } = arguments.connection(role);
    let ends = (guest, peer, vlan.filter(|vlan| *vlan != 0));
    let mut found = Vec::new();
    for (index, (key, port)) in
        keys(ports.iter().map(Source::device)).into_iter().zip(ports).enumerate()
    {
        let is_asked_for = match arguments.device.as_deref() {
            Some(device) => device == port.device(),
            None => !port.is_shown_elsewhere(),
        };
        if !is_asked_for {
            continue;
        }
        let place = Place { index, key, port: port.device().into(), tenant: None };
        let (guest, peer, vlan) = ends;
        let mut in_kernel: Vec<Flow> = Vec::new();
        for inside in [false, true] {
            in_kernel.extend(port.flow(&FlowId { guest, peer, vlan, inside })?);
        }
        let flows = view_flows(port, &in_kernel, &place, rules)?;
        found.extend(flows.into_iter().filter(|flow| {
            let id = flow.id();
            (id.guest, id.peer, id.vlan) == ends
        }));
    }
    Ok(found)
}

/// Where the guest is late, finds out whether its CPU runs.
fn watch_cpus(ports: &[Source], flows: &mut [FlowView]) {
    let mut late: Vec<_> = flows.iter_mut().filter(|flow| is_delayed_by_guest(flow)).collect();
    let watch = CpuWatch::begin(late.iter().map(|flow| &ports[flow.port_index]));
    watch.problems().iter().for_each(|problem| output::complain(problem));
    if watch.sees_any() {
        interrupt::wait(READ_EVERY);
    }
    for (flow, cpu) in late.iter_mut().zip(watch.end()) {
        flow.cpu = cpu;
    }
}
