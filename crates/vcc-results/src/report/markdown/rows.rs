//! A table of rows from several experiments, each of which says where it comes from.

use super::document::{Row, Table};
use super::experiment::{figure, judgement, required};
use super::origin::{build, day};
use super::text::{code, line, row, table};
use crate::report::numbers::number;
use crate::report::{CaseReport, Report};

/// Columns beside those of the label and of the cases; the first three are of the last case.
const BESIDE: [&str; 4] = ["paper", "required", "verdict", "measured"];

/// A row that there is a result for is written anew, any other is kept as it stands in `before`.
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

/// None where the result is of selected cases, and not of these.
pub fn cells(spec: &Row, report: &Report) -> Result<Option<Vec<String>>, String> {
    if !report.definitions.contains_key(&spec.metric) {
        let known: Vec<&str> = report.definitions.keys().map(String::as_str).collect();
        return Err(format!(
            "{} has no metric '{}': it has {}",
            report.experiment,
            spec.metric,
            known.join(", ")
        ));
    }
    let mut cases: Vec<Option<&CaseReport>> = Vec::new();
    for name in &spec.cases {
        let case = report.cases.iter().find(|case| case.name == *name);
        match case {
            None if name != "-" && report.complete => {
                let known: Vec<&str> = report.cases.iter().map(|case| case.name.as_str()).collect();
                return Err(format!(
                    "{} has no case '{name}': it has {}",
                    report.experiment,
                    known.join(", ")
                ));
            }
            None if name != "-" => return Ok(None),
            case => cases.push(case),
        }
    }
    let measured = |case: &CaseReport| {
        case.metrics.get(&spec.metric).map_or_else(|| "no valid run".into(), figure)
    };
    let mut cells = vec![line(&spec.label)];
    cells.extend(cases.iter().map(|case| case.map(measured).unwrap_or_default()));
    let last = cases.last().copied().flatten();
    let paper = last.and_then(|case| case.metrics.get(&spec.metric)?.paper);
    let verdict = last.and_then(|case| case.verdicts.iter().find(|it| it.metric == spec.metric));
    cells.push(paper.map(number).unwrap_or_default());
    cells.push(verdict.map(required).unwrap_or_default());
    cells.push(verdict.map(judgement).unwrap_or_default());
    cells.push(format!(
        "{}, {}, {}",
        code(&report.experiment),
        day(report.finished_unix_s),
        build(report.vcc_version.as_deref()),
    ));
    Ok(Some(cells))
}
