//! Puts results into the blocks of a file.

use super::document::{self, Block, Kind, Part, Selector};
use super::{Problem, bench, experiment, rows};
use crate::report::bench::BENCHES;
use crate::report::{BenchReport, Report, Results, order};
use crate::result::{Backend, Stack};
use std::cmp::Reverse;

/// A file after its blocks have been filled.
#[derive(Debug)]
pub struct Filled {
    pub text: String,
    /// What was written, by the experiments' and benchmarks' names.
    pub written: Vec<String>,
}

/// The conditions of an experiment that is run without options.
#[derive(Debug, Clone, Copy)]
pub struct Defaults {
    pub backend: Backend,
    pub stack: Stack,
}

/// Replaces the blocks for which there is a result. `defaults` knows the experiments that there are:
/// a marker that names any other is an error.
pub fn fill_markdown(
    text: &str,
    results: &Results,
    defaults: &dyn Fn(&str) -> Option<Defaults>,
) -> Result<Filled, Problem> {
    let mut parts = document::parse(text)?;
    let mut filler = Filler { results, defaults, written: Vec::new() };
    let own = named(&parts);
    filler.fill(&mut parts, &own)?;
    Ok(Filled { text: document::render(&parts), written: filler.written })
}

/// Experiments that have a block of their own anywhere in the file.
fn named(parts: &[Part]) -> Vec<Selector> {
    let blocks = parts.iter().filter_map(|part| match part {
        Part::Block(block) => Some(block),
        Part::Text(_) => None,
    });
    blocks
        .flat_map(|block| match &block.kind {
            Kind::Experiment(selector) => vec![selector.clone()],
            _ => named(&block.body),
        })
        .collect()
}

struct Filler<'a> {
    results: &'a Results,
    defaults: &'a dyn Fn(&str) -> Option<Defaults>,
    written: Vec<String>,
}

impl<'a> Filler<'a> {
    fn fill(&mut self, parts: &mut Vec<Part>, own: &[Selector]) -> Result<(), Problem> {
        for part in parts {
            let Part::Block(block) = part else { continue };
            if let Some(body) = self.body(block, own)? {
                block.body = vec![Part::Text(body)];
            }
        }
        Ok(())
    }

    /// What is to stand between the markers; none if that is to stay.
    fn body(&mut self, block: &mut Block, own: &[Selector]) -> Result<Option<String>, Problem> {
        let line = block.line;
        match &block.kind {
            Kind::Experiment(selector) => {
                let report = self.report(line, selector)?;
                Ok(report.map(|report| self.wrote(&report.experiment, experiment::block(report))))
            }
            Kind::Bench(name) => {
                let report = self.bench(line, name)?;
                Ok(report.map(|report| self.wrote(name, bench::block(report))))
            }
            Kind::Table(table) => {
                let before = document::render(&block.body);
                let mut written = Vec::new();
                let text = rows::block(table, &before, |row| {
                    let Some(report) = self.report(row.line, &row.of)? else { return Ok(None) };
                    let cells = rows::cells(row, report)
                        .map_err(|text| Problem { line: row.line, text })?;
                    written.extend(cells.is_some().then(|| report.experiment.clone()));
                    Ok(cells)
                })?;
                self.written.extend(written);
                Ok(Some(text))
            }
            Kind::Experiments(patterns) => {
                let missing = self.missing(patterns, own);
                missing.into_iter().for_each(|selector| insert(&mut block.body, selector));
                self.fill(&mut block.body, own)?;
                Ok(None)
            }
        }
    }

    fn wrote(&mut self, name: &str, text: String) -> String {
        self.written.push(name.to_owned());
        text
    }

    /// The newest of the results that are meant. Quick runs are none of them: they are a look.
    fn report(&self, line: usize, selector: &Selector) -> Result<Option<&'a Report>, Problem> {
        let id = &selector.experiment;
        let all = || self.results.files.iter().map(|file| &file.report);
        if (self.defaults)(id).is_none() && !all().any(|report| report.experiment == *id) {
            let text =
                format!("there is no experiment '{id}': `vcc-lab list` shows those there are");
            return Err(Problem { line, text });
        }
        let mut meant: Vec<&Report> =
            all().filter(|report| !report.quick && self.is_meant(selector, report)).collect();
        meant.sort_by_key(|report| Reverse(report.finished_unix_s));
        let Some(newest) = meant.first() else { return Ok(None) };
        let conditions = |report: &Report| (report.backend, report.stack);
        match meant.iter().find(|report| conditions(report) != conditions(newest)) {
            Some(other) => {
                let text = format!(
                    "there are results of '{id}' under several conditions: say '{id} {} {}' or '{id} \
                     {} {}'",
                    newest.backend, newest.stack, other.backend, other.stack
                );
                Err(Problem { line, text })
            }
            None => Ok(Some(newest)),
        }
    }

    fn bench(&self, line: usize, name: &str) -> Result<Option<&'a BenchReport>, Problem> {
        if !BENCHES.contains(&name) {
            let text = format!("there is no benchmark '{name}': there are {}", BENCHES.join(", "));
            return Err(Problem { line, text });
        }
        let own = self.results.benches.iter().filter(|report| report.name() == name);
        Ok(own.max_by_key(|report| report.finished_unix_s))
    }

    /// What has a result and matches, but no block yet.
    fn missing(&self, patterns: &[String], own: &[Selector]) -> Vec<Selector> {
        let mut missing: Vec<Selector> = Vec::new();
        for report in self.results.files.iter().map(|file| &file.report) {
            let id = &report.experiment;
            let matches = patterns.iter().any(|pattern| matches(pattern, id));
            let selector = Selector {
                experiment: id.clone(),
                backend: Some(report.backend),
                stack: Some(report.stack),
            };
            let has_block = own.iter().any(|own| self.is_meant(own, report));
            if matches && !report.quick && !has_block && !missing.contains(&selector) {
                missing.push(selector);
            }
        }
        missing
    }

    fn is_meant(&self, selector: &Selector, report: &Report) -> bool {
        let defaults = (self.defaults)(&selector.experiment);
        let backend = selector.backend.or(defaults.map(|it| it.backend));
        let stack = selector.stack.or(defaults.map(|it| it.stack));
        selector.experiment == report.experiment
            && backend.is_none_or(|backend| backend == report.backend)
            && stack.is_none_or(|stack| stack == report.stack)
    }
}

/// A `*` at the end stands for anything.
fn matches(pattern: &str, id: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == id, |start| id.starts_with(start))
}

/// An empty block in its place: before the first whose experiment's name comes after this one.
fn insert(body: &mut Vec<Part>, selector: Selector) {
    let key = |selector: &Selector| {
        (
            order::parts(&selector.experiment),
            selector.backend.map(|it| it.to_string()),
            selector.stack.map(|it| it.to_string()),
        )
    };
    let comes_after = |part: &Part| match part {
        Part::Block(Block { kind: Kind::Experiment(other), .. }) => key(other) > key(&selector),
        _ => false,
    };
    let place = body.iter().position(comes_after).unwrap_or(body.len());
    let mut words = selector.experiment.clone();
    words.extend(selector.backend.map(|backend| format!(" {backend}")));
    words.extend(selector.stack.map(|stack| format!(" {stack}")));
    let marker = format!("<!-- measured: experiment {words} -->\n");
    let kind = Kind::Experiment(selector);
    body.insert(place, Part::Block(Block { line: 0, marker, kind, body: Vec::new() }));
}
