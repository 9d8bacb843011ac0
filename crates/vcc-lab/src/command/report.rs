use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use vcc_command::output;
use vcc_results::report::{
    Known, Recorded, Repeated, Report, Results, Sources, confirm, read_results, record, render_page,
};

use crate::require_directory;

/// Put results on one page, or into the tables of a checkout
///
/// The page is one HTML file that needs no network: all verdicts at the top, then each result with
/// what the paper showed, its figure, its metrics, its doubts and the command that repeats it.
/// Several results of one experiment are all shown. A file of a directory that is no result is left
/// out with a message; any other file that cannot be read is an error.
///
/// With --record, in the root of a checkout of vcc: writes the figures to results/data, a page of
/// each experiment to docs/results, and the tables between markers such as `<!-- measured:
/// experiments PATTERN -->` in README.md and docs (experiments/README.md). Without results, renews
/// the pages and tables from results/data.
#[derive(clap::Args)]
pub struct Arguments {
    /// Files that `vcc-lab run ID --json FILE` or `vcc-lab bench NAME --json FILE` wrote, or
    /// directories of them
    #[arg(required_unless_present = "record", value_name = "RESULT")]
    results: Vec<PathBuf>,

    /// Write the page to FILE [default: report.html, and no page with --record]
    #[arg(long, value_name = "FILE", requires = "results")]
    output: Option<PathBuf>,

    /// Record the results in the checkout that is the current directory
    #[arg(long)]
    record: bool,
}

const PAGE: &str = "report.html";

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let page = arguments.output.clone();
    let page = page.or_else(|| (!arguments.record).then(|| PAGE.into()));
    if let Some(page) = &page {
        require_directory(page)?;
    }
    let results = match &arguments.results[..] {
        [] => Results::default(),
        files => read_results(files)?,
    };
    results.left_out.iter().for_each(|text| output::complain(text));
    if let Some(page) = &page {
        write_page(page, &results)?;
    }
    if arguments.record {
        write_records(&results)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Fails before a run whose result could not be recorded.
pub fn require_checkout() -> anyhow::Result<()> {
    if !Path::new(RECORDS).is_dir() {
        bail!("cannot record: there is no {RECORDS} here; change to the root of a checkout of vcc");
    }
    Ok(())
}

pub const RECORDS: &str = "results/data";

/// Writes what has changed; a table that cannot be made is refused before anything is written.
pub fn write_records(results: &Results) -> anyhow::Result<()> {
    require_checkout()?;
    write_recorded(&record(Path::new(""), results, &known())?)
}

/// Confirms the record of this name if its first runs are those of the repetition, or returns the cases of which they
/// are not.
pub fn write_confirmation(name: &str, repetition: &Report) -> anyhow::Result<Vec<String>> {
    match confirm(Path::new(""), name, repetition, &known())? {
        Repeated::Same(recorded) => write_recorded(&recorded).map(|()| Vec::new()),
        Repeated::Differs(cases) => Ok(cases),
    }
}

/// What the built-in experiments add to their records, by their IDs.
fn known() -> impl Fn(&str) -> Option<Known> {
    let experiments = vcc_lab::experiments();
    move |id| {
        let it = experiments.iter().find(|it| it.id == id)?.clone();
        let vcc_lab::Summary { backend, stack, claim, headline, .. } = it;
        Some(Known { backend, stack, claim, headline })
    }
}

fn write_recorded(recorded: &Recorded) -> anyhow::Result<()> {
    recorded.left_out.iter().for_each(|text| output::complain(text));
    for (path, text) in &recorded.files {
        if fs::read_to_string(path).ok().as_ref() != Some(text) {
            replace(path, text)?;
            output::say(&format!("recorded: {}\n", path.display()));
        }
    }
    Ok(())
}

fn write_page(path: &Path, results: &Results) -> anyhow::Result<()> {
    if results.files.is_empty() {
        bail!("there is no result of an experiment to put on a page: `vcc-lab run ID --json FILE`");
    }
    write(path, &render_page(&results.files, &sources_now))?;
    output::say(&format!("page: {}\n", path.display()));
    Ok(())
}

/// Of the experiment that a result is of, if this vcc-lab has it.
fn sources_now(report: &Report) -> Option<Sources> {
    vcc_lab::load(&report.experiment).ok().map(|it| it.sources(report.backend))
}

/// An interruption leaves the file as it was or as it should be.
fn replace(path: &Path, text: &str) -> anyhow::Result<()> {
    let new = path.with_extension("new");
    write(&new, text)?;
    fs::rename(&new, path).with_context(|| format!("cannot replace {}", path.display()))
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
