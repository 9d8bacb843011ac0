//! Man pages and shell completions for packages, generated from the definition of a command line: a
//! new subcommand needs no change here.

mod completions;
mod man;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{CommandFactory, Subcommand};

#[derive(Subcommand)]
pub enum Pages {
    /// Man pages of the command and each of its subcommands, in section 8
    Man(Directory),
    /// Completions for bash, zsh and fish, under the file names that each expects
    Completions(Directory),
}

#[derive(clap::Args)]
pub struct Directory {
    /// Directory to write to; created if it does not exist
    #[arg(value_name = "DIR")]
    path: PathBuf,
}

/// Documents the command line `C`.
pub fn run<C: CommandFactory>(pages: &Pages) -> anyhow::Result<ExitCode> {
    let mut command = C::command().disable_help_subcommand(true);
    command.build();
    match pages {
        Pages::Man(to) => man::write(command, created(&to.path)?)?,
        Pages::Completions(to) => completions::write(command, created(&to.path)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn created(directory: &Path) -> anyhow::Result<&Path> {
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot create the directory {}", directory.display()))?;
    Ok(directory)
}
