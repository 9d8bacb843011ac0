use std::process::ExitCode;

use anyhow::{Context, bail};
use vcc_command::output;
use vcc_command::treatment::TreatmentChange;
use vcc_port::Port;

use super::attach::require_not_under_policy;

/// Change the treatment of connections at ports that `vcc attach` has made
///
/// Changes the given options; the others keep their values. Tracked connections continue under the new
/// treatment, but what their handshake negotiated cannot change: a connection that began in shadow mode
/// keeps the peer's window scale and gets no ECN, so its underlay responds to loss alone.
#[derive(clap::Args)]
pub struct Arguments {
    /// The devices of the ports
    #[arg(required = true, value_name = "DEV")]
    devices: Vec<String>,

    #[command(flatten)]
    change: TreatmentChange,
}

/// Changes all of the ports, or none if one of them cannot be changed so.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut ports = Vec::new();
    for device in &arguments.devices {
        require_not_under_policy(device)?;
        let port = Port::open(device)?;
        if port.drains()? {
            bail!(
                "{device} is draining, and takes no new connections: `vcc attach {device}` ends that"
            );
        }
        let change = arguments.change.apply_to(port.params()?);
        let (params, warnings) = change.map_err(anyhow::Error::msg).context(device.clone())?;
        ports.push((port, params, warnings));
    }
    for (port, params, warnings) in ports {
        let device = port.device();
        for warning in warnings {
            output::complain(&format!("warning: {device}: {warning}"));
        }
        if let Some(tunnels) = arguments.change.inside {
            port.set_inside(tunnels)?;
        }
        let connections = match port.set_params(params)? {
            1 => "1 connection follows".to_owned(),
            n => format!("{n} connections follow"),
        };
        let underlay = params.underlay().expect("set by its name");
        let mode = params.mode().expect("set by its name");
        output::say(&format!("{device}: {underlay}, in {mode} mode; {connections}\n"));
    }
    Ok(ExitCode::SUCCESS)
}
