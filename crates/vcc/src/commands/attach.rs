use std::process::ExitCode;

use vcc_port::Port;

use super::sweep;
use super::treatment::Treatment;
use crate::output;

/// Put vcc on the host side of guests' network devices
///
/// Connections that begin from now on are translated; those that exist pass untouched. The
/// attachment lives on when this command ends, until `vcc detach` or the end of the device. A
/// port that drains takes new connections again.
#[derive(clap::Args)]
pub struct Arguments {
    /// The host side of a guest's device: a VM's tap, a container's veth
    #[arg(required = true, value_name = "DEV")]
    devices: Vec<String>,

    #[command(flatten)]
    treatment: Treatment,
}

/// All of the devices, or none: whatever is not pinned in the end goes with this function.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    sweep()?;
    let options = arguments.treatment.options();
    let mut devices = arguments.devices.clone();
    devices.sort();
    devices.dedup();
    let (mut fresh, mut draining) = (Vec::new(), Vec::new());
    for device in &devices {
        match Port::draining(device)? {
            Some(port) => draining.push(port),
            None => fresh.push(Port::attach(device, &options)?),
        }
    }
    Port::pin_all(&mut fresh)?;
    let how = if arguments.treatment.is_shadow() { ", in shadow mode" } else { "" };
    for port in &fresh {
        output::say(&format!(
            "attached to {}: {}{how}\n",
            port.device(),
            options.treatment.underlay
        ));
    }
    for port in &draining {
        port.resume(&options)?;
        let device = port.device();
        output::say(&format!("{device} drains no more: {}{how}\n", options.treatment.underlay));
    }
    if options.treatment.emit {
        output::say("duplicate ACKs and window updates are sent while `vcc emit` runs\n");
    }
    Ok(ExitCode::SUCCESS)
}
