mod progress;
mod run;

use std::process::ExitCode;

use crate::output;
use crate::table::{Align, Table};

/// Run the papers' experiments on this machine
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// List the experiments
    List,
    Run(run::Arguments),
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.what {
        What::List => {
            list();
            Ok(ExitCode::SUCCESS)
        }
        What::Run(arguments) => run::run(arguments),
    }
}

fn list() {
    let mut table = Table::new([("ID", Align::Left), ("EXPERIMENT", Align::Left)]);
    for experiment in vcc_lab::experiments() {
        table.row([experiment.id, experiment.title]);
    }
    output::say(&table.render());
}
