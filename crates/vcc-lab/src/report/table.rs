//! The report as text for a terminal.

use super::outcome::Outcome;
use super::{CaseReport, Report};
use crate::run::Backend;
use std::collections::BTreeSet;
use std::fmt::Write as _;

const HEADINGS: [&str; 7] = ["case", "metric", "median", "min", "max", "paper", "verdict"];

pub fn render_table(report: &Report) -> String {
    let mut text = format!("{}: {}\n", report.experiment, report.title);
    let quick = if report.quick { ", quick" } else { "" };
    let time = if report.backend == Backend::Virtual { ", virtual time" } else { "" };
    let _ = writeln!(text, "stack {}, seed {}{quick}{time}\n", report.stack, report.seed);
    let mut rows = vec![HEADINGS.map(str::to_owned).to_vec()];
    report.cases.iter().for_each(|case| rows.extend(case_rows(case)));
    text.push_str(&aligned(&rows));
    text.push('\n');
    for case in &report.cases {
        text.push_str(&remarks(case));
    }
    if let Some(scale) = &report.scale {
        let _ = writeln!(text, "Scale: {scale}");
    }
    let valid = if report.valid { "valid" } else { "NOT valid" };
    let said = match Outcome::of(report) {
        Outcome::Reproduced => "reproduced",
        Outcome::NotReproduced | Outcome::NotValid => "NOT reproduced",
        Outcome::PartHolds => "what was run shows what it should",
        Outcome::PartUnjudged => "nothing is expected of what was run",
        Outcome::PartFails => "what was run does NOT show what it should",
    };
    let _ = writeln!(text, "{}: {valid}, {said}", report.experiment);
    text
}

fn case_rows(case: &CaseReport) -> Vec<Vec<String>> {
    if case.metrics.is_empty() {
        let dashes = [case.name.as_str(), "(no valid run)", "", "", "", "", "NOT valid"];
        return vec![dashes.map(str::to_owned).to_vec()];
    }
    let rows = case.metrics.iter().enumerate().map(|(index, (name, metric))| {
        let verdict = case.verdicts.iter().find(|verdict| verdict.metric == *name);
        vec![
            if index == 0 { case.name.clone() } else { String::new() },
            name.clone(),
            number(metric.median),
            number(metric.min),
            number(metric.max),
            metric.paper.map(number).unwrap_or_default(),
            verdict.map(|it| if it.holds { "holds" } else { "FAILS" }).unwrap_or("").to_owned(),
        ]
    });
    rows.collect()
}

/// What a reader has to know about a case beside its numbers.
fn remarks(case: &CaseReport) -> String {
    let mut text = String::new();
    for verdict in case.verdicts.iter().filter(|verdict| !verdict.holds) {
        let _ = writeln!(text, "{}: {verdict}", case.name);
    }
    let (all, valid) = (case.runs.len(), case.valid_runs().count());
    if valid < all {
        let reasons: BTreeSet<&String> = case.runs.iter().flat_map(|run| &run.reasons).collect();
        let reasons: Vec<&str> = reasons.into_iter().map(String::as_str).collect();
        let _ = writeln!(
            text,
            "{}: {} of {all} runs not valid: {}",
            case.name,
            all - valid,
            reasons.join("; ")
        );
    }
    let warnings: BTreeSet<&String> = case.runs.iter().flat_map(|run| &run.warnings).collect();
    for warning in warnings {
        let _ = writeln!(text, "{}: {warning}", case.name);
    }
    text
}

/// Four significant digits, as far as they are digits after the point.
pub(super) fn number(value: f64) -> String {
    let magnitude = value.abs();
    let decimals = match magnitude {
        _ if magnitude >= 1000.0 || magnitude == 0.0 => 0,
        _ if magnitude >= 100.0 => 1,
        _ if magnitude >= 10.0 => 2,
        _ if magnitude >= 0.1 => 3,
        _ => 5,
    };
    format!("{value:.decimals$}")
}

fn aligned(rows: &[Vec<String>]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..HEADINGS.len()).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let is_number = (2..6).contains(&column);
            let _ = match is_number {
                true => write!(line, "{cell:>width$}  "),
                false => write!(line, "{cell:<width$}  "),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_what_matters() {
        let shown = [0.0, 0.000_25, 0.094_4, 0.992_1, 23.456, 234.56, 68_515.3].map(number);
        assert_eq!(shown, ["0", "0.00025", "0.09440", "0.992", "23.46", "234.6", "68515"]);
    }
}
