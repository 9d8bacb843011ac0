use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context;
use clap::value_parser;
use vcc_command::output;
use vcc_command::use_underlay;
use vcc_command::version;
use vcc_lab::RunOptions;
use vcc_results::report::{Outcome, Report, Results, render_svg, render_table};
use vcc_results::result::{Backend, Stack};

use crate::progress::Terminal;
use crate::report;
use crate::require_directory;

/// Exit status: the runs are valid, and an expectation fails.
pub const NOT_REPRODUCED: u8 = 3;

/// Run one experiment and compare it with its paper
///
/// Real TCP in network namespaces of its own, over emulated links. A verdict needs as many valid
/// runs of full length as the experiment says, at least three, and states its confidence: an
/// expectation holds or fails if the whole confidence interval of the median is on one side of the
/// bounds, and is undecided otherwise; more --runs then decide. Shorter or fewer runs give figures
/// only.
///
/// Exit status: 0 if the runs are valid, 3 if an expectation fails, 1 if the experiment could not
/// be run or too few runs are valid.
#[derive(clap::Args)]
pub struct Arguments {
    /// One that `vcc-lab list` shows, or the path of an experiment file
    #[arg(value_name = "ID")]
    experiment: String,

    /// Valid runs of each case [default: as the experiment says]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1000))]
    runs: Option<u32>,

    /// Fewer and shorter runs, without a verdict
    #[arg(long)]
    quick: bool,

    /// The guests' TCP: newreno, as in the papers, or modern, the kernel's default
    /// [default: as the experiment says]
    #[arg(long, value_name = "NAME")]
    stack: Option<Stack>,

    /// live: network namespaces in real time; virtual: guest kernels in virtual time
    /// [default: as the experiment says]
    #[arg(long, value_name = "NAME")]
    backend: Option<Backend>,

    /// Only this case; may be given several times
    #[arg(long = "case", value_name = "NAME")]
    cases: Vec<String>,

    /// Know the underlay in FILE, which `vcc underlay build` has made; may be given several times
    #[arg(long = "load", value_name = "FILE.o")]
    underlays: Vec<PathBuf>,

    /// Random seed
    #[arg(long, value_name = "N", default_value_t = RunOptions::default().seed)]
    seed: u64,

    /// Runs at once, in virtual time, as far as there is memory for their guests
    /// [default: the number of CPUs]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1000))]
    jobs: Option<u32>,

    /// Write all figures to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Keep windows and queues over time in the JSON
    #[arg(long, requires = "json")]
    series: bool,

    /// Record the result in the checkout that is the current directory: its figures in
    /// results/data, its page in docs/results, and its row in the tables
    #[arg(long, conflicts_with_all = ["quick", "cases"])]
    record: bool,

    /// Draw the result into FILE, as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    for file in &arguments.underlays {
        use_underlay(file)?;
    }
    let experiment = vcc_lab::load(&arguments.experiment)?;
    for file in arguments.json.iter().chain(&arguments.plot) {
        require_directory(file)?;
    }
    if arguments.record {
        report::require_checkout()?;
    }
    let options = RunOptions {
        runs: arguments.runs,
        quick: arguments.quick,
        stack: arguments.stack,
        seed: arguments.seed,
        cases: arguments.cases.clone(),
        backend: arguments.backend,
        keep_series: arguments.series,
        jobs: arguments.jobs,
    };
    let mut progress = Terminal::new(experiment.id());
    let begin = Instant::now();
    let report = vcc_lab::run(&experiment, &options, &mut progress);
    drop(progress);
    let mut report = report?;
    report.wall_s = Some(begin.elapsed().as_secs_f64());
    report.sources = experiment.sources(report.backend);
    report.vcc_version = Some(version());
    output::say(&render_table(&report));
    write(arguments, &report)?;
    if let Some(text) = &report.in_short {
        output::say(&format!("\n{text}\n"));
    }
    let outcome = report.outcome;
    if arguments.record {
        report::write_records(&Results::from(report))?;
    }
    Ok(match outcome {
        Outcome::NotValid => ExitCode::FAILURE,
        Outcome::NotReproduced => ExitCode::from(NOT_REPRODUCED),
        // The runs are what they should be, and nothing speaks against what is expected.
        Outcome::Reproduced | Outcome::Undecided | Outcome::FiguresOnly => ExitCode::SUCCESS,
    })
}

fn write(arguments: &Arguments, report: &Report) -> anyhow::Result<()> {
    if let Some(path) = &arguments.json {
        output::write_json(path, report)?;
        output::say(&format!("figures: {}\n", path.display()));
    }
    if let Some(path) = &arguments.plot {
        let failed = || format!("cannot write {}", path.display());
        fs::write(path, render_svg(report)).with_context(failed)?;
        output::say(&format!("plot: {}\n", path.display()));
    }
    Ok(())
}
