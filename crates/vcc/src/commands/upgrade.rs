use std::process::ExitCode;

use anyhow::bail;
use vcc_command::output;
use vcc_port::{Error, Governor, Host, Port, Predecessor};

use super::sweep;

/// Let this version of vcc go on where another one is attached
///
/// Ports outlive the command that attached them, and the package that it came with. This one replaces
/// their programs, older or newer, in the middle of their connections, which stay translated; if it has
/// other maps, it takes the connections over. `vcc run` does the same when it starts, and ports under its
/// policy are left to it.
#[derive(clap::Args)]
pub struct Arguments {}

pub fn run(_: &Arguments) -> anyhow::Result<ExitCode> {
    sweep()?;
    let Some(_governor) = Governor::become_it()? else {
        bail!(
            "`vcc run` keeps this host's ports: restart it, and it takes over what another version left"
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
        let told =
            if renewed { "has the programs of this version now" } else { "is of this version" };
        output::say(&format!("{} {told}\n", port.device()));
    }
    Ok(ExitCode::SUCCESS)
}
