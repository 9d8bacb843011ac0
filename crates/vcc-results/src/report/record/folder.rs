//! The folder of all records.

use super::{Record, files_in, json, unreadable};
use crate::report::{BenchReport, Report, Results, order};
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const BENCH: &str = "bench-";

/// The records of a folder, by the names of their files.
#[derive(Debug, Default)]
pub struct Folder {
    records: BTreeMap<String, Record>,
    benches: Vec<BenchReport>,
}

impl Folder {
    pub fn read(folder: &Path) -> Result<Self> {
        let mut read = Self::default();
        for path in files_in(folder, "json")? {
            let text = fs::read(&path).map_err(|source| unreadable(&path, source))?;
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let damaged = |problem: String| {
                let problem = format!("is a damaged record: {problem}");
                Error::Result { path: path.clone(), problem }
            };
            if name.starts_with(BENCH) {
                let bench = serde_json::from_slice(&text);
                read.benches.push(bench.map_err(|error| damaged(error.to_string()))?);
            } else {
                read.records.insert(name, json::parse(&text).map_err(damaged)?);
            }
        }
        Ok(read)
    }

    /// Takes results over, of several under the same conditions the newest. Returns the names of
    /// the records, and why others were left out: a part of an experiment is no record of it.
    pub fn add(&mut self, results: &Results) -> (Vec<String>, Vec<String>) {
        let (mut names, mut left_out) = (Vec::new(), Vec::new());
        let mut files: Vec<_> = results.files.iter().collect();
        files.sort_by_key(|file| file.report.finished_unix_s);
        for file in files {
            let report = &file.report;
            if report.quick || !report.complete {
                let what = if report.quick { "quick" } else { "of selected cases" };
                let path = file.path.display();
                left_out.push(format!("{path}: not recorded: the run is {what}"));
                continue;
            }
            let record = Record::from_report(report);
            let name = self.name_of(&record);
            self.records.insert(name.clone(), record);
            names.push(name);
        }
        let mut benches: Vec<_> = results.benches.iter().collect();
        benches.sort_by_key(|report| report.finished_unix_s);
        for bench in benches {
            self.benches.retain(|other| other.name() != bench.name());
            self.benches.push(bench.clone());
            names.push(format!("{BENCH}{}", bench.name()));
        }
        (names, left_out)
    }

    /// Marks a record as confirmed by a repetition of its first runs, which is the same. There must be one of this
    /// name.
    pub(in crate::report) fn confirm(&mut self, name: &str, repetition: &Report) {
        let record = self.records.get_mut(name).expect("a record of this name");
        record.confirm(repetition);
    }

    pub fn record(&self, name: &str) -> Option<&Record> {
        self.records.get(name)
    }

    /// `ID` for the first conditions that an experiment was recorded under, `ID-BACKEND-STACK` for
    /// any other.
    fn name_of(&self, record: &Record) -> String {
        let conditions = |record: &Record| (record.backend, record.stack);
        let mut own = self.records.iter().filter(|(_, it)| it.experiment == record.experiment);
        let same = own.clone().find(|(_, it)| conditions(it) == conditions(record));
        match same {
            Some((name, _)) => name.clone(),
            None if own.next().is_none() => record.experiment.clone(),
            None => format!("{}-{}-{}", record.experiment, record.backend, record.stack),
        }
    }

    /// In the order of the experiments: figure 2 before figure 11.
    pub fn records(&self) -> Vec<(&str, &Record)> {
        let mut all: Vec<_> = self.records.iter().map(|(name, it)| (name.as_str(), it)).collect();
        all.sort_by_key(|(name, record)| (order::parts(&record.experiment), *name));
        all
    }

    pub fn benches(&self) -> &[BenchReport] {
        &self.benches
    }

    /// Name and text of each file.
    pub fn files(&self) -> Vec<(PathBuf, String)> {
        let records = self.records.iter().map(|(name, it)| (name.clone(), json::text(it)));
        let bench = |it: &BenchReport| (format!("{BENCH}{}", it.name()), json::text(it));
        let files = records.chain(self.benches.iter().map(bench));
        files.map(|(name, text)| (format!("{name}.json").into(), text)).collect()
    }
}
