use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use tempfile::NamedTempFile;
use vcc_command::output;
use vcc_command::version;
use vcc_engine::export::{self, Connection};
use vcc_port::Flow;

use super::port_of;

/// Export the connections of a guest, for the host that it moves to
///
/// A guest's connections depend on vcc if it translated their handshake. `vcc import` takes them over
/// at the guest's device on the other host. Export after the guest has stopped here and before it runs
/// there, if possible; segments in between are learned by the other port from the first ones that it
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
        Some(file) => {
            write(file, &text).with_context(|| format!("cannot write {}", file.display()))?;
        }
        None => output::say(&text),
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes all or nothing, readable by the owner alone: the file has the ends of all connections.
fn write(file: &Path, text: &str) -> io::Result<()> {
    let directory = file.parent().filter(|it| !it.as_os_str().is_empty());
    let mut new = NamedTempFile::new_in(directory.unwrap_or(Path::new(".")))?;
    new.write_all(text.as_bytes())?;
    new.as_file().sync_all()?;
    new.persist(file).map(drop).map_err(|error| error.error)
}
