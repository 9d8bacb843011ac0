//! The command `vcc`: parses its arguments, calls the crates below, prints their results.

mod cli;
mod commands;
mod interrupt;
mod terminal;

use std::process::ExitCode;

use clap::Parser;
use vcc_command::{allow_most_open_files, output, usage};

use cli::{Any, Cli, Command};

fn main() -> ExitCode {
    output::run_as("vcc", parse_and_run)
}

fn parse_and_run() -> anyhow::Result<ExitCode> {
    if let Some(now) = cli::moved(std::env::args_os().skip(1)) {
        output::complain(&now);
        return Ok(ExitCode::from(usage::STATUS));
    }
    commands::underlay::know();
    let command = match <Cli>::try_parse() {
        Ok(cli) => cli.command,
        Err(error) => return Ok(usage::explain(&error, cli::renamed)),
    };
    // If raising the limit is not permitted, as in a sandbox, the default suffices for a few ports; with
    // many, the first one that cannot be opened is reported.
    let _ = allow_most_open_files();
    match command {
        Any::Shown(command) => run(command),
        Any::Generate(arguments) => commands::generate::run::<Cli<Command>>(&arguments),
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Doctor(arguments) => commands::doctor::run(&arguments),
        Command::Run(arguments) => commands::run::run(&arguments),
        Command::Status(arguments) => commands::status::run(&arguments),
        Command::LogLevel(arguments) => commands::log_level::run(&arguments),
        Command::Attach(arguments) => commands::attach::run(&arguments),
        Command::Set(arguments) => commands::set::run(&arguments),
        Command::Detach(arguments) => commands::detach::run(&arguments),
        Command::Flows(arguments) => commands::flows::run(&arguments),
        Command::Top(arguments) => commands::top::run(&arguments),
        Command::Guests(arguments) => commands::guests::run(&arguments),
        Command::Ports(arguments) => commands::ports::run(&arguments),
        Command::Read(arguments) => commands::read::run(&arguments),
        Command::Record(arguments) => commands::record::run(&arguments),
        Command::Report(arguments) => commands::report::run(&arguments),
        Command::Trace(arguments) => commands::trace::run(&arguments),
        Command::Trial(arguments) => commands::trial::run(&arguments),
        Command::Emit(arguments) => commands::emit::run(&arguments),
        Command::Export(arguments) => commands::export::run(&arguments),
        Command::Import(arguments) => commands::import::run(&arguments),
        Command::Upgrade(arguments) => commands::upgrade::run(&arguments),
        Command::Domain(arguments) => commands::domain::run(&arguments),
        Command::Policy(arguments) => commands::policy::run(&arguments),
        Command::Underlay(arguments) => commands::underlay::run(&arguments),
        Command::Bundle(arguments) => commands::bundle::run(&arguments),
        Command::Explain(arguments) => commands::explain::run(&arguments),
    }
}
