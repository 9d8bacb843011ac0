//! The command `vcc-lab`: parses its arguments, calls the crates below, prints their results.

mod bench;
mod list;
mod progress;
mod renew;
mod report;
mod run;
mod time;
mod virtual_time;

use std::path::Path;
use std::process::ExitCode;

use anyhow::ensure;
use clap::{Parser, Subcommand};
use vcc_command::generate::{self, Pages};
use vcc_command::{output, usage};

/// Run the papers' experiments on this machine, and measure what vcc costs
#[derive(Parser)]
#[command(name = "vcc-lab", version, propagate_version = true, subcommand_required = true)]
struct Cli<Commands: Subcommand = Any> {
    #[command(subcommand)]
    command: Commands,
}

/// The commands, and a hidden one for packaging. It is not a [`Command`], because shell
/// completions, unlike `--help`, show hidden commands.
#[derive(Subcommand)]
enum Any {
    #[command(flatten)]
    Shown(Command),
    /// Write man pages or shell completions
    #[command(hide = true, subcommand)]
    Generate(Pages),
}

#[derive(Subcommand)]
enum Command {
    List(list::Arguments),
    Run(run::Arguments),
    Report(report::Arguments),
    Renew(renew::Arguments),
    #[command(subcommand)]
    Bench(bench::Command),
}

fn main() -> ExitCode {
    output::run_as("vcc-lab", parse_and_run)
}

fn parse_and_run() -> anyhow::Result<ExitCode> {
    let command = match <Cli>::try_parse() {
        Ok(cli) => cli.command,
        Err(error) => return Ok(usage::explain(&error, |_| None)),
    };
    match command {
        Any::Shown(command) => run(&command),
        Any::Generate(pages) => generate::run::<Cli<Command>>(&pages),
    }
}

fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::List(arguments) => list::run(arguments),
        Command::Run(arguments) => run::run(arguments),
        Command::Report(arguments) => report::run(arguments),
        Command::Renew(arguments) => renew::run(arguments),
        Command::Bench(command) => bench::run(command),
    }
}

/// Checked before the work, so that no result is lost.
fn require_directory(file: &Path) -> anyhow::Result<()> {
    let directory = match file.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    ensure!(
        directory.is_dir(),
        "cannot write {}: there is no directory {}",
        file.display(),
        directory.display()
    );
    Ok(())
}
