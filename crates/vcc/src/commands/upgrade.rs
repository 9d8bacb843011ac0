use std::process::ExitCode;

use anyhow::bail;
use vcc_command::output;
use vcc_port::{Error, Governor, Host, Port, Predecessor};

use super::sweep;

/// Take over ports that another version of vcc attached
///
/// Ports outlive the command that attached them, and its package. This command replaces their programs,
/// whether older or newer, while connections stay translated; if the layout of maps differs, it takes
/// the connections over. `vcc run` does the same when it starts; this command leaves ports under its policy
/// to it.
#[derive(clap::Args)]
pub struct Arguments {}

pub fn run(_: &Arguments) -> anyhow::Result<ExitCode> {
    sweep()?;
    let Some(_governor) = Governor::become_it()? else {
        bail!(
            "`vcc run` keeps this host's ports: restart it, and it takes over the ports of the other version"
        );
    };
    let inherited =
        Predecessor::succeed(|_, ports| match ports.iter().find(|port| port.by_policy) {
            Some(port) => Err(Error::UnderPolicy { device: port.device.clone() }),
            None => Ok(()),
        })?;
    for port in &inherited {
        let (device, connections) = (&port.device, port.connections);
        output::say(&format!("{device}: taken over, with {connections} connection(s)\n"));
        if port.lost > 0 {
            output::complain(&format!(
                "{device}: {} connection(s) could not be taken over",
                port.lost
            ));
        }
    }
    if !inherited.is_empty() {
        let lost = inherited.iter().any(|port| port.lost > 0);
        return Ok(if lost { ExitCode::FAILURE } else { ExitCode::SUCCESS });
    }
    if Port::list()?.is_empty() {
        output::say("vcc is attached nowhere\n");
        return Ok(ExitCode::SUCCESS);
    }
    Port::require_understood()?;
    let (host, replaced) = Host::open()?.take_over()?;
    for mut port in Port::list_of(&host)? {
        let renewed = port.renew()? || replaced;
        let outcome =
            if renewed { "has the programs of this version now" } else { "is of this version" };
        output::say(&format!("{} {outcome}\n", port.device()));
    }
    Ok(ExitCode::SUCCESS)
}
