//! What packages contain besides the command.

use std::process::ExitCode;

use clap::{CommandFactory, Subcommand};
use vcc_command::generate::{self, Pages};
use vcc_command::output;
use vcc_port::Underlays;
use vcc_view::Source;

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
    /// The names of ports, for shell completions
    Ports,
    /// The names of underlays that are loaded, for shell completions
    Underlays,
}

/// `C` is the command line to document.
pub fn run<C: CommandFactory>(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.what {
        What::Pages(pages) => generate::run::<C>(pages),
        What::Crds => {
            output::say(&vcc_daemon::definitions());
            Ok(ExitCode::SUCCESS)
        }
        What::Ports => Ok(names(Source::list()?.iter().map(|port| port.device().to_owned()))),
        What::Underlays => {
            Ok(names(Underlays::pinned()?.iter().map(|(_, object)| object.name().to_owned())))
        }
    }
}

fn names(names: impl Iterator<Item = String>) -> ExitCode {
    output::say(&names.map(|name| name + "\n").collect::<String>());
    ExitCode::SUCCESS
}
