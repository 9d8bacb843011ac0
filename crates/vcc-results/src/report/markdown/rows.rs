//! A table of rows from several experiments, each of which names its source.

use super::document::{Row, Table};
use super::origin::build;
use super::page::{figure, judgement, paper, required};
use super::text::{code, line, row, table};
use crate::report::record::Record;
use crate::report::when::day;

/// Columns besides those of the label and of the cases; the first three are of the last case.
const BESIDE: [&str; 4] = ["paper", "required", "verdict", "measured"];

/// A row with a result is written anew, any other is kept as it is in `before`.
pub fn block(
    spec: &Table,
    before: &str,
    mut result: impl FnMut(&Row) -> Result<Option<Vec<String>>, super::Problem>,
) -> Result<String, super::Problem> {
    let columns: Vec<String> = spec.columns.iter().map(|title| line(title)).collect();
    let head: Vec<&str> = columns.iter().map(String::as_str).chain(BESIDE).collect();
    let mut text = table(&head, &[]);
    for it in &spec.rows {
        let start = row([line(&it.label).as_str()].into_iter());
        let start = start.trim_end_matches(['|', '\n']);
        match result(it)? {
            Some(cells) => text += &row(cells.iter().map(String::as_str)),
            None => before
                .lines()
                .filter(|line| line.starts_with(&format!("{start}|")))
                .for_each(|line| text += &format!("{line}\n")),
        }
    }
    Ok(format!("\n{text}\n"))
}

pub fn cells(spec: &Row, record: &Record) -> Result<Vec<String>, String> {
    if !record.definitions.contains_key(&spec.metric) {
        let known: Vec<&str> = record.definitions.keys().map(String::as_str).collect();
        return Err(format!(
            "{} has no metric '{}': it has {}",
            record.experiment,
            spec.metric,
            known.join(", ")
        ));
    }
    let mut rows = Vec::new();
    for case in &spec.cases {
        let row = record.row(&spec.metric, case);
        if case != "-" && row.is_none() && !record.has_case(case) {
            return Err(format!("{} has no case '{case}'", record.experiment));
        }
        rows.push(match (case.as_str(), row) {
            ("-", _) => (String::new(), None),
            (_, row) => (row.map_or_else(|| "no valid run".into(), figure), row),
        });
    }
    let last = rows.last().and_then(|(_, row)| *row);
    let judged = last.and_then(|row| row.judged.as_ref());
    let mut cells = vec![line(&spec.label)];
    cells.extend(rows.into_iter().map(|(text, _)| text));
    cells.push(last.map(paper).unwrap_or_default());
    cells.push(judged.map(required).unwrap_or_default());
    cells.push(judged.map(judgement).unwrap_or_default());
    cells.push(format!(
        "{}, {}, {}",
        code(&record.experiment),
        day(&record.measured),
        build(record.vcc_version.as_deref()),
    ));
    Ok(cells)
}
