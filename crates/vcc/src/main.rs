//! The command: parses what it is told, asks the crates below, prints what they answer.

mod cli;
mod commands;
mod end;
mod interrupt;
mod output;
mod seen;
mod table;
mod terminal;
mod units;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return cli::explain(&error),
    };
    let result = match cli.command {
        Command::Doctor(arguments) => commands::doctor::run(&arguments),
        Command::Attach(arguments) => commands::attach::run(&arguments),
        Command::Detach(arguments) => commands::detach::run(&arguments),
        Command::Flows(arguments) => commands::flows::run(&arguments),
        Command::Top(arguments) => commands::top::run(&arguments),
        Command::Guests(arguments) => commands::guests::run(&arguments),
        Command::Ports(arguments) => commands::ports::run(&arguments),
        Command::Trace(arguments) => commands::trace::run(&arguments),
        Command::Emit(arguments) => commands::emit::run(&arguments),
        Command::Policy(arguments) => commands::policy::run(&arguments),
        Command::Explain(arguments) => commands::explain::run(&arguments),
        Command::Lab(arguments) => commands::lab::run(&arguments),
        Command::Bench(arguments) => commands::bench::run(&arguments),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            output::complain(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}
