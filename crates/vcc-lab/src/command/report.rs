use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use vcc_command::output;
use vcc_results::report::{Defaults, Filled, Results, fill_markdown, read_results, render_page};

use crate::require_directory;

/// Put results on one page, and their figures into Markdown files
///
/// The page is one HTML file that needs no network: all verdicts at the top, then each result with
/// what the paper showed, its figure, its metrics, its doubts and the command that repeats it.
/// Several results of one experiment are all shown. A file of a directory that is no result is left
/// out with a message; any other file that cannot be read is an error.
///
/// A Markdown file says by markers where figures go: `<!-- measured: experiment ID -->`, `<!--
/// measured: experiments PATTERN... -->`, `<!-- measured: bench NAME -->`, or a table whose rows
/// the marker names (experiments/README.md); each up to `<!-- /measured -->`. A marker without
/// backend or stack means the experiment's default. Blocks for which there is no result stay as they
/// are, and so does all text outside the markers.
#[derive(clap::Args)]
pub struct Arguments {
    /// Files that `vcc-lab run ID --json FILE` or `vcc-lab bench NAME --json FILE` wrote, or
    /// directories of them
    #[arg(required = true, value_name = "RESULT")]
    results: Vec<PathBuf>,

    /// Write the page to FILE [default: report.html, and no page with --markdown]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write figures between the markers of FILE; may be given several times
    #[arg(long, value_name = "FILE")]
    markdown: Vec<PathBuf>,
}

const PAGE: &str = "report.html";

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let page = arguments.output.clone();
    let page = page.or_else(|| arguments.markdown.is_empty().then(|| PAGE.into()));
    if let Some(page) = &page {
        require_directory(page)?;
    }
    let results = read_results(&arguments.results)?;
    results.left_out.iter().for_each(|text| output::complain(text));
    // A file that cannot be filled is refused before any is written.
    let mut filled = Vec::new();
    for path in &arguments.markdown {
        filled.push((path, fill(path, &results)?));
    }
    if let Some(page) = &page {
        write_page(page, &results)?;
    }
    for (path, filled) in &filled {
        write(path, &filled.text)?;
        let written = match filled.written.len() {
            0 => "no block has a result".into(),
            _ => filled.written.join(", "),
        };
        output::say(&format!("markdown: {}: {written}\n", path.display()));
    }
    Ok(ExitCode::SUCCESS)
}

fn fill(path: &Path, results: &Results) -> anyhow::Result<Filled> {
    let name = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    let known = vcc_lab::experiments();
    let defaults = |id: &str| {
        let experiment = known.iter().find(|experiment| experiment.id == id)?;
        Some(Defaults { backend: experiment.backend, stack: experiment.stack })
    };
    fill_markdown(&text, results, &defaults)
        .map_err(|problem| anyhow::anyhow!("{name}:{}: {}", problem.line, problem.text))
}

fn write_page(path: &Path, results: &Results) -> anyhow::Result<()> {
    if results.files.is_empty() {
        bail!("there is no result of an experiment to put on a page: `vcc-lab run ID --json FILE`");
    }
    write(path, &render_page(&results.files))?;
    output::say(&format!("page: {}\n", path.display()));
    Ok(())
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
