use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use clap::builder::RangedU64ValueParser;
use vcc_command::{output, table};
use vcc_policy::{Connection, Policy};
use vcc_port::{Flow, FlowId, SharedPolicy};
use vcc_view::{
    CpuWatch, FlowView, Place, READ_EVERY, RulesInForce, Source, is_delayed_by_guest, keys, rows,
    view_flows,
};

use super::policy;
use super::tenants::Tenants;
use crate::interrupt;

/// Explain which rule of a policy applies to a connection
///
/// Names the rules before it, with the conditions that the connection does not meet. If the
/// connection is live at a port here, also prints what the page shows of it.
#[derive(clap::Args)]
pub struct Arguments {
    /// The end that opens the connection; IPv6 as [ADDRESS]:PORT
    #[arg(value_name = "SRC:PORT")]
    source: SocketAddr,

    /// The end that accepts it
    #[arg(value_name = "DST:PORT")]
    destination: SocketAddr,

    /// The policy [default: the one that the daemon has in force]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Whether the guest opens the connection (client) or its peer does (server)
    #[arg(long, value_enum, default_value_t = Role::Client)]
    role: Role,

    /// The guest's port, from which the tenant follows
    #[arg(long, value_name = "DEV")]
    device: Option<String>,

    /// The guest's tenant
    #[arg(long, value_name = "NAME", conflicts_with = "device")]
    tenant: Option<String>,

    /// The VLAN; without it, untagged
    #[arg(long, value_name = "ID", value_parser = RangedU64ValueParser::<u16>::new().range(0..=4094))]
    vlan: Option<u16>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Role {
    Client,
    Server,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let policy = policy::read_or_ask(arguments.file.as_deref())?;
    let connection = connection(arguments, &policy)?;
    output::say(&policy.explain(&connection).to_string());
    // The rule can be explained without the right to read ports.
    let live = live(&connection, arguments.device.as_deref()).unwrap_or_default();
    live.iter().for_each(|flow| output::say(&detail(flow)));
    Ok(ExitCode::SUCCESS)
}

/// The connection at the ports here; devices of several network namespaces may have the same name.
fn live(connection: &Connection, device: Option<&str>) -> Result<Vec<FlowView>, vcc_port::Error> {
    let ports = Source::list()?;
    let rules = RulesInForce::read(SharedPolicy::find()?.as_ref())?;
    let mut found = Vec::new();
    for (index, (key, port)) in
        keys(ports.iter().map(Source::device)).into_iter().zip(&ports).enumerate()
    {
        let is_asked_for = match device {
            Some(device) => device == port.device(),
            None => !port.is_shown_elsewhere(),
        };
        if !is_asked_for {
            continue;
        }
        let place = Place { index, key, port: port.device().into(), tenant: None };
        let vlan = connection.vlan.filter(|vlan| *vlan != 0);
        let ends = (connection.guest, connection.peer, vlan);
        let (guest, peer, vlan) = ends;
        let mut in_kernel: Vec<Flow> = Vec::new();
        for inside in [false, true] {
            in_kernel.extend(port.flow(&FlowId { guest, peer, vlan, inside })?);
        }
        let flows = view_flows(port, &in_kernel, &place, &rules)?;
        found.extend(flows.into_iter().filter(|flow| {
            let id = flow.id();
            (id.guest, id.peer, id.vlan) == ends
        }));
    }
    watch_cpus(&ports, &mut found);
    Tenants::ask().name(&mut found);
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

fn detail(flow: &FlowView) -> String {
    format!("live at {}:\n{}", flow.port, table::pairs(&rows(flow)))
}

fn connection(arguments: &Arguments, policy: &Policy) -> anyhow::Result<Connection> {
    let tenant = match &arguments.device {
        Some(device) => policy::tenant_of(policy, device)?,
        None => arguments.tenant.clone(),
    };
    let (source, destination) = (arguments.source, arguments.destination);
    let (guest, peer, role) = match arguments.role {
        Role::Client => (source, destination, vcc_policy::Role::Client),
        Role::Server => (destination, source, vcc_policy::Role::Server),
    };
    Ok(Connection { tenant, guest, peer, vlan: arguments.vlan, role })
}
