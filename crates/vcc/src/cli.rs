//! The command line. The arguments of each command are in the file of the command.

use std::process::ExitCode;

use clap::error::{ContextKind, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};
use vcc_policy::Surface;

use crate::commands::{
    attach, bench, detach, doctor, domain, emit, explain, export, flows, generate, guests, import,
    lab, policy, ports, run, status, top, trace, underlay, upgrade,
};
use crate::output;

/// Lets the operator choose the congestion control of guests: vcc sits on the host side of a
/// guest's network device and rewrites the ECN bits, windows and options of its TCP connections.
#[derive(Parser)]
#[command(name = "vcc", version, propagate_version = true, subcommand_required = true)]
pub struct Cli<Commands: Subcommand = Any> {
    #[command(subcommand)]
    pub command: Commands,
}

/// The commands, and a hidden one for packaging. It is not a [`Command`], because shell
/// completions, unlike `--help`, show hidden commands.
#[derive(Subcommand)]
pub enum Any {
    #[command(flatten)]
    Shown(Command),
    #[command(hide = true)]
    Generate(generate::Arguments),
}

#[derive(Subcommand)]
pub enum Command {
    Doctor(doctor::Arguments),
    Run(run::Arguments),
    Status(status::Arguments),
    Attach(attach::Arguments),
    Detach(detach::Arguments),
    Flows(flows::Arguments),
    Top(top::Arguments),
    Guests(guests::Arguments),
    Ports(ports::Arguments),
    Trace(trace::Arguments),
    Emit(emit::Arguments),
    Export(export::Arguments),
    Import(import::Arguments),
    Upgrade(upgrade::Arguments),
    Domain(domain::Arguments),
    Policy(policy::Arguments),
    Underlay(underlay::Arguments),
    Explain(explain::Arguments),
    Lab(lab::Arguments),
    Bench(bench::Arguments),
}

/// The command line as `--help` shows it, with all that clap derives from it.
pub fn shown() -> clap::Command {
    let mut command = Cli::<Command>::command().disable_help_subcommand(true);
    command.build();
    command
}

const USAGE: u8 = 2;

/// Prints help and version to stdout, and an error to stderr in one line.
pub fn explain(error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            output::say(&text);
            return ExitCode::SUCCESS;
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            output::complain("no command given: `vcc --help` lists them");
        }
        _ => {
            let text = text.strip_prefix("error: ").unwrap_or(&text);
            let what = text.split("\n\nUsage:").next().unwrap_or_default();
            let what = what.split("\n\nFor more information").next().unwrap_or_default();
            output::complain(renamed(error).as_deref().unwrap_or(what));
        }
    }
    ExitCode::from(USAGE)
}

/// The message about a former option of `vcc attach`. Former names are no hidden arguments: shell
/// completions, unlike `--help`, would show those.
fn renamed(error: &clap::Error) -> Option<String> {
    let context = |kind| error.get(kind).map(ToString::to_string);
    let argument = context(ContextKind::InvalidArg)?;
    let is_of_attach = context(ContextKind::Usage)?.starts_with("Usage: vcc attach ");
    let name = argument.strip_prefix("--").filter(|_| is_of_attach)?;
    Surface::CommandLine.renamed(&name.replace('-', "_"))
}
