use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;

use super::require_directory;
use crate::output;

/// Put results on one page, for a browser or for paper
///
/// The page is one HTML file that needs no network: all verdicts at the top, then each result with
/// what the paper showed, its figure, its metrics, its doubts and the command that repeats it.
/// Several results of one experiment are all shown. What a directory holds beside results is left
/// out and told; any other file that cannot be read is an error.
#[derive(clap::Args)]
pub struct Arguments {
    /// Files that `vcc lab run ID --json FILE` wrote, or directories of them
    #[arg(required = true, value_name = "RESULT")]
    results: Vec<PathBuf>,

    /// Write the page to FILE
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    require_directory(&arguments.output)?;
    let results = vcc_lab::read_results(&arguments.results)?;
    results.left_out.iter().for_each(|text| output::complain(text));
    let page = vcc_lab::render_page(&results.files);
    let path = arguments.output.display();
    fs::write(&arguments.output, page).with_context(|| format!("cannot write {path}"))?;
    output::say(&format!("page: {path}\n"));
    Ok(ExitCode::SUCCESS)
}
