//! Underlays that are loaded at run time.

mod build;
mod list;
mod load;
mod unload;

use std::process::ExitCode;

use clap::Subcommand;
use vcc_command::output;
use vcc_port::Underlays;

/// Build and load congestion controls of your own, without a new build or a restart of vcc
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Build(build::Arguments),
    Load(load::Arguments),
    List(list::Arguments),
    Unload(unload::Arguments),
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        Command::Build(arguments) => build::run(arguments),
        Command::Load(arguments) => load::run(arguments),
        Command::List(arguments) => list::run(arguments),
        Command::Unload(arguments) => unload::run(arguments),
    }
}

/// From here on names of underlays that are loaded on this host are understood. Who may not read what
/// is pinned knows only those that are built in.
pub fn know() {
    match Underlays::know() {
        Ok(refused) => refused.iter().for_each(|what| output::complain(what)),
        Err(vcc_port::Error::NotPermitted { .. }) => {}
        Err(error) => output::complain(&error.to_string()),
    }
}
