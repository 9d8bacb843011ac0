//! One file per command.

pub mod attach;
pub mod bench;
pub mod detach;
pub mod doctor;
pub mod domain;
pub mod emit;
pub mod explain;
pub mod flows;
pub mod generate;
pub mod guests;
pub mod lab;
pub mod policy;
pub mod ports;
pub mod run;
mod seconds;
mod selection;
pub mod status;
pub mod top;
pub mod trace;
mod treatment;

use vcc_port::Port;

use crate::output;

/// The ports of the named devices; without names, all ports.
fn ports_of(devices: &[String]) -> anyhow::Result<Vec<Port>> {
    sweep()?;
    if devices.is_empty() {
        return Ok(Port::list()?);
    }
    Ok(devices.iter().map(|device| Port::open(device)).collect::<Result<_, _>>()?)
}

/// Removes what is left of devices that have gone, and reports it.
fn sweep() -> anyhow::Result<()> {
    Port::sweep()?.iter().for_each(|device| output::complain(&swept(device)));
    Ok(())
}

fn swept(device: &str) -> String {
    format!("removed what was left of `{device}`, which has gone")
}
