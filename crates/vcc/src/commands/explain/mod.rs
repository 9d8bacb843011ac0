//! Which rule applies to a connection, and what is known of it if it is live.

mod answer;
mod live;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use clap::builder::RangedU64ValueParser;
use vcc_command::{output, table};
use vcc_policy::{Connection, Role};
use vcc_view::rows;

use answer::Rules;
use live::Live;

/// Explain which rule of a policy applies to a connection
///
/// Names the rules before it, with the conditions that the connection does not meet. If the
/// connection is live at a port here, the command takes its tenant and role from that port and connection,
/// and also prints its details, as on the web page. Without the daemon, it uses the rules in the kernel,
/// which do not list their conditions.
#[derive(clap::Args)]
pub struct Arguments {
    /// The end that opens the connection; IPv6 as [ADDRESS]:PORT
    #[arg(value_parser = end, value_name = "SRC:PORT")]
    source: SocketAddr,

    /// The end that accepts it
    #[arg(value_parser = end, value_name = "DST:PORT")]
    destination: SocketAddr,

    /// The policy [default: the one that the daemon has in force]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Whether the guest opens the connection (client) or its peer does (server) [default: as the live
    /// connection, else client]
    #[arg(long, value_enum)]
    role: Option<RoleName>,

    /// The guest's port, from which the tenant follows [default: that of the live connection]
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
enum RoleName {
    Client,
    Server,
}

impl From<RoleName> for Role {
    fn from(name: RoleName) -> Self {
        match name {
            RoleName::Client => Role::Client,
            RoleName::Server => Role::Server,
        }
    }
}

impl Arguments {
    /// Of the tenant that is named, or none.
    fn connection(&self, role: Role) -> Connection {
        let (guest, peer) = match role {
            Role::Client => (self.source, self.destination),
            Role::Server => (self.destination, self.source),
        };
        let tenant = self.tenant.clone();
        Connection { tenant, class: None, guest, peer, vlan: self.vlan, role }
    }
}

fn end(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "expected ADDRESS:PORT, such as 192.0.2.1:40000 or [2001:db8::1]:40000".to_owned()
    })
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let rules = Rules::read(arguments.file.as_deref())?;
    // The rule can be explained without the right to read ports.
    let live = Live::find(arguments).unwrap_or_default();
    if live.is_empty() {
        let role = arguments.role.map_or(Role::Client, Role::from);
        let answer = rules.of_any(arguments.connection(role), arguments.device.as_deref())?;
        output::say(&answer.to_string());
        return Ok(ExitCode::SUCCESS);
    }
    let mut said = None;
    for live in &live {
        let (connection, flow) = (live.connection(arguments), &live.flow);
        let answer = rules.of_live(connection, live, arguments.device.as_deref())?;
        if said.as_ref() != Some(&answer) {
            output::say(&answer.to_string());
        }
        output::say(&format!("live at {}:\n{}", flow.port, table::pairs(rows(flow))));
        if let Some(why) = answer.difference(live, arguments) {
            output::say(&format!("{why}\n"));
        }
        said = Some(answer);
    }
    Ok(ExitCode::SUCCESS)
}
