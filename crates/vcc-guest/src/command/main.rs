//! The command `vcc-guest`: parses its arguments, calls the library, prints its results.

mod flood;
mod remove;
mod status;

use std::process::ExitCode;

use anyhow::ensure;
use clap::{Parser, Subcommand};
use vcc_command::generate::{self, Pages};
use vcc_command::{output, usage};
use vcc_guest::Provider;

/// Install vFlood's congestion control in this guest, for a host whose `vcc domain` holds its segments
///
/// With it, the host controls congestion for this guest, also while the guest's virtual CPU waits for a core.
/// On a host without `vcc domain --act hold` in front of this guest, it floods the guest's network, unless
/// `flood --channel` is used.
#[derive(Parser)]
#[command(name = "vcc-guest", version, propagate_version = true, subcommand_required = true)]
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
    Flood(flood::Arguments),
    Remove(remove::Arguments),
    Status(status::Arguments),
}

fn main() -> ExitCode {
    output::run_as("vcc-guest", parse_and_run)
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
        Command::Flood(arguments) => flood::run(arguments),
        Command::Remove(arguments) => remove::run(arguments),
        Command::Status(arguments) => status::run(arguments),
    }
}

fn require_root(to: &str) -> anyhow::Result<()> {
    // SAFETY: the call cannot fail.
    let user = unsafe { libc::geteuid() };
    ensure!(user == 0, "only root can {to}, and this is user {user}: run it with sudo");
    Ok(())
}

/// What registers the congestion control, after "registered".
fn by(provider: &Provider) -> String {
    match provider {
        Provider::Bpf(pin) => format!("as BPF, pinned at {}", pin.display()),
        Provider::Module => "by the module tcp_flood".into(),
        Provider::BuiltIn => "by the kernel itself".into(),
        Provider::Other => "as BPF by another program".into(),
        Provider::Hidden => "in a way that only root may see".into(),
    }
}
