//! The command line. The arguments of each command are in the file of the command.

use std::ffi::OsString;

use clap::error::ContextKind;
use clap::{Parser, Subcommand};
use vcc_policy::Surface;

use crate::commands::{
    attach, bundle, detach, doctor, domain, emit, explain, export, flows, generate, guests, import,
    log_level, policy, ports, read, record, report, run, set, status, top, trace, trial, underlay,
    upgrade,
};

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
    LogLevel(log_level::Arguments),
    Attach(attach::Arguments),
    Set(set::Arguments),
    Detach(detach::Arguments),
    Flows(flows::Arguments),
    Top(top::Arguments),
    Guests(guests::Arguments),
    Ports(ports::Arguments),
    Read(read::Arguments),
    Record(record::Arguments),
    Report(report::Arguments),
    Trace(trace::Arguments),
    Trial(trial::Arguments),
    Emit(emit::Arguments),
    Export(export::Arguments),
    Import(import::Arguments),
    Upgrade(upgrade::Arguments),
    Domain(Box<domain::Arguments>),
    Policy(policy::Arguments),
    Underlay(underlay::Arguments),
    Explain(explain::Arguments),
    Bundle(bundle::Arguments),
}

/// The message about a former option of `vcc attach`. Former names are no hidden arguments: shell
/// completions, unlike `--help`, would show those.
pub fn renamed(error: &clap::Error) -> Option<String> {
    let context = |kind| error.get(kind).map(ToString::to_string);
    let argument = context(ContextKind::InvalidArg)?;
    let is_of_attach = context(ContextKind::Usage)?.starts_with("Usage: vcc attach ");
    let name = argument.strip_prefix("--").filter(|_| is_of_attach)?;
    Surface::CommandLine.renamed(&name.replace('-', "_"))
}

/// The message about a command that is now one of `vcc-lab`.
pub fn moved(arguments: impl Iterator<Item = OsString>) -> Option<String> {
    let words: Vec<_> = arguments.map(|word| word.to_string_lossy().into_owned()).collect();
    let (former, rest) = words.split_first()?;
    let now = match former.as_str() {
        "lab" => rest,
        "bench" => &words[..],
        _ => return None,
    };
    let now = [&["vcc-lab".to_owned()], now].concat().join(" ");
    Some(format!("`vcc {former}` is now a command of its own: {now}"))
}
