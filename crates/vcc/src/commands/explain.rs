use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::ValueEnum;
use clap::builder::RangedU64ValueParser;
use vcc_policy::{Connection, Policy};

use super::policy;
use crate::output;

/// Say which rule of a policy a connection falls under, and why not another
#[derive(clap::Args)]
pub struct Arguments {
    /// The end that opens the connection; IPv6 as [ADDRESS]:PORT
    #[arg(value_name = "SRC:PORT")]
    source: SocketAddr,

    /// The end that it is opened to
    #[arg(value_name = "DST:PORT")]
    destination: SocketAddr,

    /// The policy [default: what the daemon has in force]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Which end the guest is: the one that opens (client), or the other
    #[arg(long, value_enum, default_value_t = Role::Client)]
    role: Role,

    /// The guest's port, which tells the tenant
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
    Ok(ExitCode::SUCCESS)
}

fn connection(arguments: &Arguments, policy: &Policy) -> anyhow::Result<Connection> {
    let tenant = match &arguments.device {
        Some(device) => {
            let port = policy.port_of(device).with_context(|| {
                format!("`{device}` is no port: no [[ports]] of the policy match it")
            })?;
            port.tenant().map(str::to_owned)
        }
        None => arguments.tenant.clone(),
    };
    let (source, destination) = (arguments.source, arguments.destination);
    let (guest, peer, role) = match arguments.role {
        Role::Client => (source, destination, vcc_policy::Role::Client),
        Role::Server => (destination, source, vcc_policy::Role::Server),
    };
    Ok(Connection { tenant, guest, peer, vlan: arguments.vlan, role })
}
