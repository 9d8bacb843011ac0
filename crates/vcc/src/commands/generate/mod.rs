//! What packages carry besides the binary, all of it from the definition of the command line:
//! a new command needs nothing here.

mod completions;
mod man;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{CommandFactory, Subcommand};

use crate::cli::{self, Cli};

/// Write man pages or shell completions, for packages
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// A page for vcc and for each of its commands, in section 8
    Man(Directory),
    /// Completions for bash, zsh and fish, under the names that these look for
    Completions(Directory),
}

#[derive(clap::Args)]
struct Directory {
    /// Where to write the files; it is made if need be
    #[arg(value_name = "DIR")]
    path: PathBuf,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.what {
        What::Man(to) => man::write(shown(), made(&to.path)?)?,
        What::Completions(to) => completions::write(shown(), made(&to.path)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The command line as `--help` shows it, with all that clap derives of it.
fn shown() -> clap::Command {
    let mut command = Cli::<cli::Command>::command().disable_help_subcommand(true);
    command.build();
    command
}

fn made(directory: &Path) -> anyhow::Result<&Path> {
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot make the directory {}", directory.display()))?;
    Ok(directory)
}
