//! The command line. Each command's arguments lie with the command.

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

use crate::commands::{
    attach, bench, detach, doctor, emit, explain, flows, generate, guests, lab, policy, ports, run,
    status, top, trace,
};
use crate::output;

/// Another congestion control for the fabric than the guests have: vcc sits on the host side of
/// a guest's network device and rewrites ECN bits, windows and options of its TCP connections.
#[derive(Parser)]
#[command(name = "vcc", version, propagate_version = true, subcommand_required = true)]
pub struct Cli<Commands: Subcommand = Any> {
    #[command(subcommand)]
    pub command: Commands,
}

/// What is parsed: the commands, and the one that helps to package them. It is no member of theirs
/// because completions, unlike `--help`, would show it even so.
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
    Policy(policy::Arguments),
    Explain(explain::Arguments),
    Lab(lab::Arguments),
    Bench(bench::Arguments),
}

const USAGE: u8 = 2;

/// Help and version go to stdout as they are; what was wrong goes to stderr in one line.
pub fn explain(error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            output::say(&text);
            return ExitCode::SUCCESS;
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            output::complain("which command? `vcc --help` lists them");
        }
        _ => {
            let text = text.strip_prefix("error: ").unwrap_or(&text);
            let what = text.split("\n\nUsage:").next().unwrap_or_default();
            let what = what.split("\n\nFor more information").next().unwrap_or_default();
            output::complain(what);
        }
    }
    ExitCode::from(USAGE)
}
