//! Policies, as far as they are files.

mod check;
mod schema;
mod show;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap::Subcommand;
use vcc_policy::{Policy, Severity};

use crate::output;

/// Look at a policy: the rules of which connections get which underlay
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Check(check::Arguments),
    Show(show::Arguments),
    Schema(schema::Arguments),
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        Command::Check(arguments) => check::run(arguments),
        Command::Show(arguments) => show::run(arguments),
        Command::Schema(arguments) => schema::run(arguments),
    }
}

/// The policy in a file. What is wrong with it goes to stderr, each with its place.
pub fn read(path: &Path) -> anyhow::Result<Policy> {
    let name = path.display().to_string();
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    let (problems, policy) = match Policy::parse(&text, &name) {
        Ok(checked) => (checked.warnings, Some(checked.policy)),
        Err(wrong) => (wrong.problems, None),
    };
    for problem in &problems {
        output::complain_at_length(&problem.to_string());
    }
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error).count();
    policy.with_context(|| format!("{name} cannot be used: {}", counted(errors, "error")))
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
