//! The command as a user meets it: what it prints, where, and with which exit code.

mod background;
mod bundle;
mod coexistence;
mod command_output;
mod daemon;
mod docs;
mod doctor;
mod emitting;
mod generating;
mod guests;
mod kubernetes;
mod libvirt;
mod lifecycle;
mod live;
mod policy;
mod pty;
mod read;
mod recording;
mod refusals;
mod screen;
mod seeing;
mod several_hosts;
mod stable;
mod tracing;
mod underlays;
mod usage;
mod wire;

use std::process::Command;

use command_output::CommandOutput;

const NAME: &str = "vcc";

/// Knows of no daemon: one of this machine's own is not asked.
fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vcc"));
    command.env("RUNTIME_DIRECTORY", std::env::temp_dir().join("vcc-no-daemon"));
    command
}

fn vcc(arguments: &str) -> CommandOutput {
    command().args(arguments.split_whitespace()).output().expect("the command").into()
}
