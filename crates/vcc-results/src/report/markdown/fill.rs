//! Puts records into the blocks of a file.

use super::document::{self, Kind, Part, Selector};
use super::{Problem, bench, rows, summary};
use crate::report::bench::BENCHES;
use crate::report::record::{Known, Record};
use crate::report::{BenchReport, Folder};

/// Replaces the blocks for which there is a record. `known` knows the experiments that there are: a
/// marker that names any other is an error.
pub fn fill_markdown(
    text: &str,
    folder: &Folder,
    known: &dyn Fn(&str) -> Option<Known>,
) -> Result<String, Problem> {
    let mut parts = document::parse(text)?;
    let filler = Filler { folder, known };
    for part in &mut parts {
        let Part::Block(block) = part else { continue };
        let line = block.line;
        let body = match &block.kind {
            Kind::Experiments(patterns) => Some(summary::block(patterns, folder, known)),
            Kind::Bench(name) => filler.bench(line, name)?.map(bench::block),
            Kind::Table(table) => Some(rows::block(table, &block.body, |row| {
                let Some(record) = filler.record(row.line, &row.of)? else { return Ok(None) };
                let cells = rows::cells(row, record);
                cells.map(Some).map_err(|text| Problem { line: row.line, text })
            })?),
        };
        block.body = body.unwrap_or_else(|| std::mem::take(&mut block.body));
    }
    Ok(document::render(&parts))
}

struct Filler<'a> {
    folder: &'a Folder,
    known: &'a dyn Fn(&str) -> Option<Known>,
}

impl<'a> Filler<'a> {
    /// The record that is meant: under the experiment's own conditions, where the marker names none.
    fn record(&self, line: usize, selector: &Selector) -> Result<Option<&'a Record>, Problem> {
        let id = &selector.experiment;
        let known = (self.known)(id);
        let records = self.folder.records();
        let own: Vec<_> = records.iter().filter(|(_, it)| it.experiment == *id).collect();
        if known.is_none() && own.is_empty() {
            let text =
                format!("there is no experiment '{id}': `vcc-lab list` shows those there are");
            return Err(Problem { line, text });
        }
        let backend = selector.backend.or(known.as_ref().map(|it| it.backend));
        let stack = selector.stack.or(known.as_ref().map(|it| it.stack));
        let is_meant = |record: &Record| {
            backend.is_none_or(|it| it == record.backend)
                && stack.is_none_or(|it| it == record.stack)
        };
        let mut meant = own.into_iter().map(|(_, record)| *record).filter(|it| is_meant(it));
        match (meant.next(), meant.next()) {
            (Some(one), Some(other)) => {
                let text = format!(
                    "there are results of '{id}' under several conditions: say '{id} {} {}' or '{id} \
                     {} {}'",
                    one.backend, one.stack, other.backend, other.stack
                );
                Err(Problem { line, text })
            }
            (one, _) => Ok(one),
        }
    }

    fn bench(&self, line: usize, name: &str) -> Result<Option<&'a BenchReport>, Problem> {
        if !BENCHES.contains(&name) {
            let text = format!("there is no benchmark '{name}': there are {}", BENCHES.join(", "));
            return Err(Problem { line, text });
        }
        Ok(self.folder.benches().iter().find(|report| report.name() == name))
    }
}
