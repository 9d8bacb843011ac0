use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use vcc_command::output;
use vcc_command::version;
use vcc_engine::export::{self, Connection};
use vcc_port::Flow;

use super::{port_of, private_file};

/// Export the connections of a guest, for the host that it moves to
///
/// A guest's connections depend on vcc if it translated their handshake. `vcc import` takes them over
/// at the guest's device on the other host. Export after the guest has stopped here and before it runs
/// there, if possible; the other port infers segments in between from the first ones that it
/// sees. Connections in their handshake are left out.
#[derive(clap::Args)]
pub struct Arguments {
    /// The host side of the guest's device
    #[arg(value_name = "DEV")]
    device: String,

    /// The file to write [default: stdout]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let port = port_of(&arguments.device, "its connections cannot be exported")?;
    let writer = format!("vcc {}", version());
    let connection =
        |Flow { guest, peer, vlan, inside, state }| Connection { guest, peer, vlan, inside, state };
    let connections: Vec<Connection> = port.flows()?.into_iter().map(connection).collect();
    let text = export::write(&writer, port.device(), &connections);
    match &arguments.file {
        // It has the ends of all connections.
        Some(file) => {
            private_file::write(file, text.as_bytes())
                .with_context(|| format!("cannot write {}", file.display()))?;
        }
        None => output::say(&text),
    }
    Ok(ExitCode::SUCCESS)
}
