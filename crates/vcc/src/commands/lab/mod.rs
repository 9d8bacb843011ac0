mod progress;
mod report;
mod run;

use std::path::Path;
use std::process::ExitCode;

use anyhow::ensure;

use vcc_command::output;
use vcc_command::table::{Align, Table};

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
    Report(report::Arguments),
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.what {
        What::List => {
            list();
            Ok(ExitCode::SUCCESS)
        }
        What::Run(arguments) => run::run(arguments),
        What::Report(arguments) => report::run(arguments),
    }
}

fn list() {
    let mut table = Table::new([("ID", Align::Left), ("EXPERIMENT", Align::Left)]);
    for experiment in vcc_lab::experiments() {
        table.row([experiment.id, experiment.title]);
    }
    output::say(&table.render());
}

/// Checked before the work, so that no result is lost.
fn require_directory(file: &Path) -> anyhow::Result<()> {
    let directory = match file.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    ensure!(
        directory.is_dir(),
        "cannot write {}: there is no directory {}",
        file.display(),
        directory.display()
    );
    Ok(())
}
