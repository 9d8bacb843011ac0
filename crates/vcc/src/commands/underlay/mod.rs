//! Underlays that are loaded at run time.

mod build;
mod list;
mod load;
mod unload;

use std::process::ExitCode;

use clap::Subcommand;
use vcc_command::output;
use vcc_port::Underlays;

/// Build and load your own congestion controls, without rebuilding or restarting vcc
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

/// Registers the underlays that are loaded on this host. Without permission to read the pins, only
/// built-in ones are known.
pub fn know() {
    match Underlays::know() {
        Ok(refused) => refused.iter().for_each(|what| output::complain(what)),
        Err(vcc_port::Error::NotPermitted { .. }) => {}
        Err(error) => output::complain(&error.to_string()),
    }
}
