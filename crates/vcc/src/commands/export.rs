use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use tempfile::NamedTempFile;
use vcc_command::output;
use vcc_command::version;
use vcc_export::Connection;
use vcc_port::Flow;

use super::port_of;

/// Describe the connections of a guest, for the host that it moves to
///
/// A guest's connections depend on vcc where it has translated their handshake. `vcc import` takes
/// them over at the device that the guest has on the other host. Best is to export when the guest
/// has stopped here and before it goes on there; what it has sent or received in between, the other
/// port learns from its first segments. Connections in their handshake are left out.
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
    let text = vcc_export::write(&writer, port.device(), &connections);
    match &arguments.file {
        Some(file) => {
            write(file, &text).with_context(|| format!("cannot write {}", file.display()))?;
        }
        None => output::say(&text),
    }
    Ok(ExitCode::SUCCESS)
}

/// Whole or not at all, and for the owner alone: the file says who talks to whom.
fn write(file: &Path, text: &str) -> io::Result<()> {
    let directory = file.parent().filter(|it| !it.as_os_str().is_empty());
    let mut new = NamedTempFile::new_in(directory.unwrap_or(Path::new(".")))?;
    new.write_all(text.as_bytes())?;
    new.as_file().sync_all()?;
    new.persist(file).map(drop).map_err(|error| error.error)
}
