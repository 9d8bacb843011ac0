//! Results as they were written, from files and directories.

use super::bench::BENCH_FORMAT_VERSION;
use super::{BenchReport, FORMAT_VERSION, Report};
use crate::{Error, Result};
use serde::Deserialize;
use serde_json::error::Category;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// One file, and what it holds.
#[derive(Debug, Clone)]
pub struct ResultFile {
    pub path: PathBuf,
    pub report: Report,
}

#[derive(Debug, Clone, Default)]
pub struct Results {
    /// Several results of one experiment are all kept.
    pub files: Vec<ResultFile>,
    /// Results of `vcc-lab bench`.
    pub benches: Vec<BenchReport>,
    /// Files that are no part of it, each with its reason.
    pub left_out: Vec<String>,
}

impl From<Report> for Results {
    fn from(report: Report) -> Self {
        let path = report.experiment.clone().into();
        Self { files: vec![ResultFile { path, report }], ..Self::default() }
    }
}

/// All results in these files, and in the files `*.json` of these directories.
///
/// Other files of a directory are left out, and so are copies of files that have been read. Any
/// other file that cannot be read is an error, so that no experiment goes missing unnoticed.
pub fn read_results(arguments: &[PathBuf]) -> Result<Results> {
    let mut results = Results::default();
    let mut seen = Seen::default();
    for argument in arguments {
        let in_directory = argument.is_dir();
        let paths = if in_directory { in_it(argument)? } else { vec![argument.clone()] };
        for path in paths {
            let text = fs::read(&path).map_err(|source| unreadable(&path, source))?;
            if let Some(reason) = seen.before(&path, &text) {
                results.left_out.extend(reason.map(|reason| left_out(&path, &reason)));
                continue;
            }
            match parse(&text) {
                Ok(Content::Experiment(report)) => {
                    results.files.push(ResultFile { path, report: *report });
                }
                Ok(Content::Bench(report)) => results.benches.push(*report),
                Err(Problem::SomethingElse) if in_directory => {
                    results.left_out.push(left_out(&path, &Problem::SomethingElse.to_string()));
                }
                Err(problem) => {
                    return Err(Error::Result { path, problem: problem.to_string() });
                }
            }
        }
    }
    if results.files.is_empty() && results.benches.is_empty() {
        let path = arguments.first().cloned().unwrap_or_default();
        return Err(Error::Result { path, problem: NOTHING.into() });
    }
    Ok(results)
}

const NOTHING: &str =
    "holds no result: `vcc-lab run ID --json FILE` and `vcc-lab bench NAME --json FILE` write one";

fn unreadable(path: &Path, source: std::io::Error) -> Error {
    Error::Read { path: path.into(), source }
}

fn left_out(path: &Path, reason: &str) -> String {
    format!("{}: left out: {reason}", path.display())
}

fn in_it(directory: &Path) -> Result<Vec<PathBuf>> {
    let list = || -> std::io::Result<Vec<PathBuf>> {
        fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path())).collect()
    };
    let mut paths = list().map_err(|source| unreadable(directory, source))?;
    paths.retain(|path| path.extension().is_some_and(|it| it == "json") && path.is_file());
    paths.sort();
    Ok(paths)
}

/// Files that have been read, by name and by content.
#[derive(Default)]
struct Seen {
    names: HashSet<PathBuf>,
    texts: Vec<(PathBuf, Vec<u8>)>,
}

impl Seen {
    /// None for what is new; for the rest why it is not, unless it is the very same file.
    fn before(&mut self, path: &Path, text: &[u8]) -> Option<Option<String>> {
        let name = path.canonicalize().unwrap_or_else(|_| path.into());
        if !self.names.insert(name) {
            return Some(None);
        }
        let twin = self.texts.iter().find(|(_, known)| known == text);
        if let Some((twin, _)) = twin.filter(|_| !text.is_empty()) {
            return Some(Some(format!("it is a copy of {}", twin.display())));
        }
        self.texts.push((path.into(), text.into()));
        None
    }
}

#[derive(Debug, PartialEq, thiserror::Error)]
enum Problem {
    #[error("is empty: the run that should have written it did not finish; run it again")]
    Empty,
    #[error("is truncated in line {0}: run the experiment again")]
    Truncated(usize),
    #[error("is not JSON: {0}")]
    Syntax(String),
    #[error("is not a result of `vcc-lab run ID --json FILE` or `vcc-lab bench NAME --json FILE`")]
    SomethingElse,
    #[error("is a result without format_version, from an older vcc: run the experiment again")]
    Unversioned,
    #[error(
        "is a result of format_version {found}, and this vcc reads {read}: read it with the vcc that \
         wrote it, or measure again"
    )]
    OtherVersion { found: u64, read: u32 },
    #[error("is a damaged result: {0}")]
    Damaged(String),
}

/// The fields by which a result of any version is recognised.
#[derive(Deserialize)]
struct Marks {
    experiment: Option<serde_json::Value>,
    cases: Option<serde_json::Value>,
    bench: Option<serde_json::Value>,
    format_version: Option<u64>,
}

enum Content {
    Experiment(Box<Report>),
    Bench(Box<BenchReport>),
}

fn parse(text: &[u8]) -> std::result::Result<Content, Problem> {
    if text.trim_ascii().is_empty() {
        return Err(Problem::Empty);
    }
    let value: serde_json::Value =
        serde_json::from_slice(text).map_err(|error| match error.classify() {
            Category::Eof => Problem::Truncated(error.line()),
            _ => Problem::Syntax(error.to_string()),
        })?;
    let Ok(marks) = Marks::deserialize(&value) else { return Err(Problem::SomethingElse) };
    let is_bench = marks.bench.is_some();
    if !is_bench && (marks.experiment.is_none() || marks.cases.is_none()) {
        return Err(Problem::SomethingElse);
    }
    let read = if is_bench { BENCH_FORMAT_VERSION } else { FORMAT_VERSION };
    match marks.format_version {
        None => return Err(Problem::Unversioned),
        Some(found) if found != u64::from(read) => {
            return Err(Problem::OtherVersion { found, read });
        }
        Some(_) => {}
    }
    // Again from the text: an error in it has a line.
    let damaged = |error: serde_json::Error| Problem::Damaged(error.to_string());
    if is_bench {
        return Ok(Content::Bench(serde_json::from_slice(text).map_err(damaged)?));
    }
    Ok(Content::Experiment(serde_json::from_slice(text).map_err(damaged)?))
}

#[cfg(test)]
mod tests;
