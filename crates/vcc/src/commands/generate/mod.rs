//! Man pages and shell completions for packages, generated from the definition of the command line:
//! a new command needs no change here. And the definitions of Kubernetes' resources.

mod completions;
mod man;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Subcommand;

/// Write man pages, shell completions, or the definitions of Kubernetes' resources
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Man pages of vcc and each of its commands, in section 8
    Man(Directory),
    /// Completions for bash, zsh and fish, under the file names that each expects
    Completions(Directory),
    /// The definitions of Kubernetes' resources VccPolicy and VccNode, for `kubectl apply -f -`
    Crds,
}

#[derive(clap::Args)]
struct Directory {
    /// Directory to write to; created if it does not exist
    #[arg(value_name = "DIR")]
    path: PathBuf,
}

/// `command` is the command line to document.
pub fn run(arguments: &Arguments, command: clap::Command) -> anyhow::Result<ExitCode> {
    match &arguments.what {
        What::Man(to) => man::write(command, created(&to.path)?)?,
        What::Crds => crate::output::say(&vcc_daemon::definitions()),
        What::Completions(to) => completions::write(command, created(&to.path)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn created(directory: &Path) -> anyhow::Result<&Path> {
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot create the directory {}", directory.display()))?;
    Ok(directory)
}
