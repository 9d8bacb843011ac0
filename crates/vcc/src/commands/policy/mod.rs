//! Policies: in files, and in force.

mod apply;
mod check;
mod rules;
mod schema;
mod show;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use clap::Subcommand;
use vcc_command::output;
use vcc_daemon::{Client, PolicyInForce, RuntimeDir, counted, read_policy};
use vcc_policy::{Policy, PortSelector, Problem};

pub use rules::rules_of;
pub use show::report;

/// Check, show or apply a policy: the rules that choose an underlay for each connection
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Check(check::Arguments),
    Apply(apply::Arguments),
    Show(show::Arguments),
    Schema(schema::Arguments),
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        Command::Check(arguments) => check::run(arguments),
        Command::Apply(arguments) => apply::run(arguments),
        Command::Show(arguments) => show::run(arguments),
        Command::Schema(arguments) => schema::run(arguments),
    }
}

/// The policy in a file; without one, what the daemon has in force.
pub fn read_or_ask(path: Option<&Path>) -> anyhow::Result<Policy> {
    match path {
        Some(path) => read(path),
        None => parse(&daemon().policy()?),
    }
}

/// A policy that a daemon has in force.
pub fn parse(in_force: &PolicyInForce) -> anyhow::Result<Policy> {
    let parsed = Policy::parse(&in_force.text, &in_force.file_name);
    // The daemon accepted it, so an error means that the daemon is of another version.
    parsed.map(|checked| checked.policy).map_err(|wrong| {
        complain(&wrong.problems);
        anyhow!("the daemon is of another version, and its policy is invalid for this one: restart the daemon")
    })
}

pub fn daemon() -> Client {
    Client::new(&RuntimeDir::of_environment())
}

/// Reads the policy in a file. Prints its problems to stderr, each with its place.
pub fn read(path: &Path) -> anyhow::Result<Policy> {
    read_with_text(path).map(|(policy, _)| policy)
}

fn read_with_text(path: &Path) -> anyhow::Result<(Policy, String)> {
    let name = path.display().to_string();
    let text = read_policy(path).with_context(|| format!("cannot read {name}"))?;
    match Policy::parse(&text, &name) {
        Ok(checked) => {
            complain(&checked.warnings);
            Ok((checked.policy, text))
        }
        Err(wrong) => {
            complain(&wrong.problems);
            Err(anyhow!("{name} is invalid: {}", counted(wrong.errors(), "error")))
        }
    }
}

pub fn complain(problems: &[Problem]) {
    for problem in problems {
        output::complain_at_length(&problem.to_string());
    }
}

/// The port at a device.
pub fn port_at<'a>(policy: &'a Policy, device: &str) -> anyhow::Result<&'a PortSelector> {
    let port = match vcc_view::socket_of(device) {
        Some(socket) => policy.port_of_domain(&socket, device).with_context(|| {
            if socket.is_empty() {
                format!("the policy has no [[ports]] with a `buffer` for `{device}`")
            } else {
                format!("no [[ports]] of the policy match {socket}, the socket of `{device}`")
            }
        })?,
        None => {
            let port = policy.port_of(device).or_else(|| policy.port_of_detour(device));
            port.with_context(|| {
                format!("`{device}` is no port: no [[ports]] of the policy match it")
            })?
        }
    };
    Ok(port)
}
