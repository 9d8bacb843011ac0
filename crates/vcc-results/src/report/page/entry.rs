//! A result as the page names it.

use crate::report::{Age, Outcome, Report, ResultFile, Sources, order};
use std::collections::BTreeSet;
use std::path::Path;

pub struct Entry<'a> {
    pub path: &'a Path,
    pub report: &'a Report,
    /// None for an experiment whose sources are unknown.
    pub age: Option<Age>,
    /// No other part of the page has it.
    pub anchor: String,
    /// Distinguishes it from other results of this experiment, if there are any.
    distinguished_by: Option<String>,
}

impl<'a> Entry<'a> {
    pub fn all(results: &'a [ResultFile], now: &dyn Fn(&Report) -> Option<Sources>) -> Vec<Self> {
        let mut ordered: Vec<&ResultFile> = results.iter().collect();
        ordered.sort_by_cached_key(|file| order::key(file));
        let mut taken = BTreeSet::from(["top".to_owned(), "results".to_owned()]);
        let entries = ordered.iter().map(|file| {
            let report = &file.report;
            Self {
                path: &file.path,
                report,
                age: now(report).map(|now| Age::between(&report.sources, &now)),
                anchor: anchor(&report.experiment, &mut taken),
                distinguished_by: distinguished_by(file, &ordered),
            }
        });
        entries.collect()
    }

    /// The experiment, and the conditions where there are several results of it.
    pub fn name(&self) -> String {
        let id = &self.report.experiment;
        self.distinguished_by.as_ref().map_or_else(|| id.clone(), |by| format!("{id} ({by})"))
    }

    /// The conditions of its runs.
    pub fn how(&self) -> String {
        how(self.report)
    }

    /// The outcome; a result of selected cases is named so.
    pub fn verdict(&self) -> &'static str {
        match (self.report.outcome, self.report.complete) {
            (Outcome::Reproduced, true) => "Reproduced",
            (Outcome::Reproduced, false) => "Selected cases reproduced",
            (Outcome::NotReproduced, true) => "Not reproduced",
            (Outcome::NotReproduced, false) => "Selected cases not reproduced",
            (Outcome::Undecided, true) => "Undecided",
            (Outcome::Undecided, false) => "Selected cases undecided",
            (Outcome::FiguresOnly, _) => "Figures only",
            (Outcome::NotValid, _) => "Not valid",
        }
    }

    pub fn mark(&self) -> &'static str {
        match self.report.outcome {
            Outcome::Reproduced => "✓",
            Outcome::NotReproduced => "✗",
            Outcome::Undecided => "?",
            Outcome::NotValid => "!",
            Outcome::FiguresOnly => "–",
        }
    }

    /// The class of what shows the verdict.
    pub fn tone(&self) -> &'static str {
        match self.report.outcome {
            Outcome::Reproduced => "good",
            Outcome::NotReproduced => "bad",
            Outcome::Undecided | Outcome::NotValid => "doubtful",
            Outcome::FiguresOnly => "part",
        }
    }

    pub fn valid_runs(&self) -> usize {
        self.report.cases.iter().map(|case| case.valid_runs().count()).sum()
    }

    pub fn all_runs(&self) -> usize {
        self.report.cases.iter().map(|case| case.runs.len()).sum()
    }
}

fn how(report: &Report) -> String {
    let quick = if report.quick { ", quick" } else { "" };
    format!("{}, {}{quick}", report.backend, report.stack)
}

/// The conditions of its runs, or else the file's name.
fn distinguished_by(file: &ResultFile, all: &[&ResultFile]) -> Option<String> {
    let siblings = all.iter().filter(|it| it.report.experiment == file.report.experiment);
    let siblings: Vec<String> = siblings.map(|it| how(&it.report)).collect();
    let how = how(&file.report);
    match (siblings.len(), siblings.iter().filter(|other| **other == how).count()) {
        (1, _) => None,
        (_, 1) => Some(how),
        _ => Some(file.path.file_name()?.to_string_lossy().into_owned()),
    }
}

/// Made of what needs no escaping.
fn anchor(id: &str, taken: &mut BTreeSet<String>) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let base: String = id.chars().map(plain).collect();
    let base = if base.is_empty() { "result".into() } else { base };
    let mut name = base.clone();
    let mut number = 1;
    while !taken.insert(name.clone()) {
        number += 1;
        name = format!("{base}-{number}");
    }
    name
}
