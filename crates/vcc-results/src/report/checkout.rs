//! The files that a checkout has of its records: data, a page of each, and the tables of others.

use super::markdown::{fill_markdown, page};
use super::record::{Folder, Known, files_in, unreadable};
use super::{Report, Results};
use crate::{Error, Result};
use std::fs;
use std::path::{Path, PathBuf};

const DATA: &str = "results/data";
const PAGES: &str = "docs/results";
const MARKER: &str = "<!-- measured:";

/// Files to be written, and what became of the results.
#[derive(Debug)]
pub struct Recorded {
    /// By their paths below the root.
    pub files: Vec<(PathBuf, String)>,
    /// Names of the records that are new.
    pub names: Vec<String>,
    pub left_out: Vec<String>,
}

/// All files below `root` that are made of records, once these results are among them. `known`
/// knows the experiments that there are.
pub fn record(
    root: &Path,
    results: &Results,
    known: &dyn Fn(&str) -> Option<Known>,
) -> Result<Recorded> {
    let mut folder = Folder::read(&root.join(DATA))?;
    let (names, left_out) = folder.add(results);
    Ok(Recorded { files: files(root, &folder, known)?, names, left_out })
}

/// What a repetition of a record's first runs has shown.
#[derive(Debug)]
pub enum Repeated {
    /// They are the same: all files below the root that are made of records, now that this one is confirmed.
    Same(Recorded),
    /// The first runs of these cases are others.
    Differs(Vec<String>),
}

/// Confirms the record of this name if its first runs are those of the repetition.
pub fn confirm(
    root: &Path,
    name: &str,
    repetition: &Report,
    known: &dyn Fn(&str) -> Option<Known>,
) -> Result<Repeated> {
    let mut folder = Folder::read(&root.join(DATA))?;
    let record = folder.record(name);
    let differing = record.map_or_else(Vec::new, |record| record.differing_cases(repetition));
    if !differing.is_empty() {
        return Ok(Repeated::Differs(differing));
    }
    folder.confirm(name, repetition);
    let files = files(root, &folder, known)?;
    Ok(Repeated::Same(Recorded { files, names: vec![name.into()], left_out: Vec::new() }))
}

fn files(
    root: &Path,
    folder: &Folder,
    known: &dyn Fn(&str) -> Option<Known>,
) -> Result<Vec<(PathBuf, String)>> {
    let mut files: Vec<(PathBuf, String)> = Vec::new();
    files.extend(folder.files().into_iter().map(|(name, text)| (Path::new(DATA).join(name), text)));
    for (name, record) in folder.records() {
        let path = Path::new(PAGES).join(format!("{name}.md"));
        files.push((path, page(name, record)));
    }
    let mut pages = files_in(&root.join("docs"), "md")?;
    pages.push(root.join("README.md"));
    for path in pages {
        let text = fs::read_to_string(&path).map_err(|source| unreadable(&path, source))?;
        if !text.contains(MARKER) {
            continue;
        }
        let text = fill_markdown(&text, folder, known).map_err(|problem| {
            let path = format!("{}:{}:", path.display(), problem.line).into();
            Error::Result { path, problem: problem.text }
        })?;
        files.push((path.strip_prefix(root).unwrap_or(&path).to_owned(), text));
    }
    Ok(files)
}

#[cfg(test)]
mod tests;
