use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::value_parser;
use vcc_lab::{Backend, Report, RunOptions, Stack};

use super::progress::Terminal;
use super::require_directory;
use crate::output;

/// Run one experiment, and say whether it shows what the paper showed
///
/// Real TCP in network namespaces of its own, over emulated links. Exits with 0 if the runs are
/// valid, whatever they show.
#[derive(clap::Args)]
pub struct Arguments {
    /// One that `vcc lab list` shows, or the path of an experiment file
    #[arg(value_name = "ID")]
    experiment: String,

    /// Valid runs of each case [default: as the experiment says]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1000))]
    runs: Option<u32>,

    /// Few and short runs: for a look
    #[arg(long)]
    quick: bool,

    /// The guests' TCP: newreno, as in the papers, or modern, the kernel's default
    /// [default: as the experiment says]
    #[arg(long, value_name = "NAME")]
    stack: Option<Stack>,

    /// What carries hosts and time: live, network namespaces in real time, or virtual, kernels of
    /// their own in virtual time [default: as the experiment says]
    #[arg(long, value_name = "NAME")]
    backend: Option<Backend>,

    /// Only this case; may be given several times
    #[arg(long = "case", value_name = "NAME")]
    cases: Vec<String>,

    /// What all chance begins with
    #[arg(long, value_name = "N", default_value_t = RunOptions::default().seed)]
    seed: u64,

    /// Write all figures to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Keep windows and queues over time in the JSON
    #[arg(long, requires = "json")]
    series: bool,

    /// Draw the result into FILE, as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let experiment = vcc_lab::load(&arguments.experiment)?;
    for file in arguments.json.iter().chain(&arguments.plot) {
        require_directory(file)?;
    }
    let options = RunOptions {
        runs: arguments.runs,
        quick: arguments.quick,
        stack: arguments.stack,
        seed: arguments.seed,
        cases: arguments.cases.clone(),
        backend: arguments.backend,
        keep_series: arguments.series,
    };
    let mut progress = Terminal::new(experiment.id());
    let report = vcc_lab::run(&experiment, &options, &mut progress);
    drop(progress);
    let report = report?;
    output::say(&vcc_lab::render_table(&report));
    write(arguments, &report)?;
    Ok(if report.valid { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn write(arguments: &Arguments, report: &Report) -> anyhow::Result<()> {
    if let Some(path) = &arguments.json {
        output::write_json(path, report)?;
        output::say(&format!("figures: {}\n", path.display()));
    }
    if let Some(path) = &arguments.plot {
        let failed = || format!("cannot write {}", path.display());
        fs::write(path, vcc_lab::render_svg(report)).with_context(failed)?;
        output::say(&format!("plot: {}\n", path.display()));
    }
    Ok(())
}
