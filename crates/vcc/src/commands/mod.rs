//! One file per command.

pub mod attach;
pub mod bundle;
pub mod detach;
pub mod doctor;
pub mod domain;
pub mod emit;
pub mod explain;
pub mod export;
pub mod flows;
pub mod generate;
pub mod guests;
pub mod import;
pub mod log_level;
pub mod policy;
pub mod ports;
mod private_file;
pub mod read;
pub mod record;
pub mod report;
pub mod run;
mod selection;
pub mod set;
pub mod status;
mod tenants;
pub mod top;
pub mod trace;
pub mod trial;
pub mod underlay;
pub mod upgrade;

use anyhow::bail;
use vcc_command::output;
use vcc_port::{Error, Port};
use vcc_view::{PortView, Source, serves_tap, why_no_flows};

/// The ports of the named devices; without names, all ports that can be read.
fn sources_of(devices: &[String]) -> anyhow::Result<Vec<Source>> {
    sweep()?;
    let mut ports = Source::open_all(devices)?;
    let failures = ports.iter().filter_map(Source::failure);
    match failures.reduce(|one, other| format!("{one}; {other}")) {
        Some(failures) if !devices.is_empty() => bail!(failures),
        Some(failures) => output::complain(&failures),
        None => {}
    }
    ports.retain(|port| port.failure().is_none());
    Ok(ports)
}

/// The same, of those in the kernel alone. `instead`: what to do at a port of `vcc domain`.
fn ports_of(devices: &[String], instead: &str) -> anyhow::Result<Vec<Port>> {
    sweep()?;
    if devices.is_empty() {
        return Ok(Port::list()?);
    }
    devices.iter().map(|device| open(device, instead)).collect()
}

/// The same, of one device.
fn port_of(device: &str, instead: &str) -> anyhow::Result<Port> {
    sweep()?;
    open(device, instead)
}

fn open(device: &str, instead: &str) -> anyhow::Result<Port> {
    match Port::open(device) {
        Err(Error::NotAttached { .. }) if serves_tap(device) => {
            bail!("`{device}` is a port of `vcc domain`, not one in the kernel: {instead}")
        }
        port => Ok(port?),
    }
}

/// Why there is nothing to show of these devices' ports, which have so many connections.
fn why_none(devices: &[String], flows: usize) -> anyhow::Result<String> {
    let ports = Source::open_all(devices)?;
    let views: Result<Vec<PortView>, _> = ports.iter().map(PortView::read).collect();
    Ok(why_no_flows(&views?, flows))
}

/// Removes what is left of devices that have gone, and reports it.
fn sweep() -> anyhow::Result<()> {
    Port::sweep()?.iter().for_each(|device| output::complain(&swept(device)));
    Ok(())
}

fn swept(device: &str) -> String {
    format!("removed the pinned maps of `{device}`, which no longer exists")
}
