//! What packages contain besides the command.

use std::process::ExitCode;

use clap::{CommandFactory, Subcommand};
use vcc_command::generate::{self, Pages};
use vcc_command::output;

/// Write man pages, shell completions, or the definitions of Kubernetes' resources
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    #[command(flatten)]
    Pages(Pages),
    /// The definitions of Kubernetes' resources VccPolicy and VccNode, for `kubectl apply -f -`
    Crds,
}

/// `C` is the command line to document.
pub fn run<C: CommandFactory>(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.what {
        What::Pages(pages) => generate::run::<C>(pages),
        What::Crds => {
            output::say(&vcc_daemon::definitions());
            Ok(ExitCode::SUCCESS)
        }
    }
}
