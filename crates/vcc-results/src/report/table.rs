//! The report as text for a terminal.

use super::numbers::{certainty, number};
use super::outcome::{Outcome, verdicts, why_figures_only};
use super::{CaseReport, Judgement, MetricReport, Report, Verdict, verdict};
use crate::result::Backend;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use vcc_command::table::Align::{Left, Right};
use vcc_command::table::{Align, Table};

const COLUMNS: [(&str, Align); 7] = [
    ("case", Left),
    ("metric", Left),
    ("median", Right),
    ("min", Right),
    ("max", Right),
    ("paper", Right),
    ("verdict", Left),
];

pub fn render_table(report: &Report) -> String {
    let mut text = format!("{}: {}\n", report.experiment, report.title);
    let quick = if report.quick { ", quick" } else { "" };
    let time = if report.backend == Backend::Virtual { ", virtual time" } else { "" };
    let _ = writeln!(text, "stack {}, {}{quick}{time}\n", report.stack, report.seeds());
    let mut table = Table::new(COLUMNS);
    report.cases.iter().flat_map(case_rows).for_each(|row| table.row(row));
    text.push_str(&table.render());
    text.push('\n');
    text.push_str(&definitions(report));
    for case in &report.cases {
        text.push_str(&remarks(case, report.schedule.runs));
    }
    if let Some(scale) = &report.scale {
        let _ = writeln!(text, "Scale: {scale}");
    }
    text.push_str(&how_sure(report));
    let _ = writeln!(text, "{}: {}", report.experiment, conclusion(report));
    text
}

/// What each metric of the table is.
fn definitions(report: &Report) -> String {
    let shown: BTreeSet<&str> =
        report.cases.iter().flat_map(|case| case.metrics.keys()).map(String::as_str).collect();
    let defined = || shown.iter().filter_map(|name| Some((*name, report.definitions.get(*name)?)));
    let width = defined().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, definition) in defined() {
        let _ = writeln!(text, "{name:<width$}  {definition}");
    }
    if text.is_empty() { text } else { format!("Metrics:\n{text}\n") }
}

/// Explains the percentages next to verdicts.
fn how_sure(report: &Report) -> String {
    let is = |wanted| verdicts(&report.cases).any(|verdict| verdict.judgement == wanted);
    if !is(Judgement::Holds) && !is(Judgement::Fails) && !is(Judgement::Undecided) {
        return String::new();
    }
    let runs = report.schedule.runs;
    let mut text = format!(
        "Percentages: confidence, by {runs} runs, that the median of all possible runs is where the \
         verdict says.\n"
    );
    if is(Judgement::Undecided) {
        let more = 2 * runs + 1;
        let _ = writeln!(
            text,
            "Undecided: the median may be on either side of a bound; --runs {more} may decide."
        );
    }
    text
}

fn conclusion(report: &Report) -> String {
    let which = if report.complete { "" } else { "selected cases " };
    match report.outcome {
        Outcome::NotValid => {
            let next = match report.backend {
                Backend::Live => "; run it again while the machine has nothing else to do",
                Backend::Virtual => "",
            };
            format!("NOT valid, so there is no verdict: the reasons are above{next}")
        }
        Outcome::FiguresOnly => {
            format!("valid, figures only: {}", why_figures_only(report))
        }
        Outcome::Reproduced => format!("valid, {which}reproduced"),
        Outcome::NotReproduced => format!("valid, {which}NOT reproduced"),
        Outcome::Undecided => format!("valid, {which}undecided"),
    }
}

fn case_rows(case: &CaseReport) -> Vec<[String; COLUMNS.len()]> {
    if case.metrics.is_empty() {
        let dashes = [case.name.as_str(), "(no valid run)", "", "", "", "", "NOT valid"];
        return vec![dashes.map(str::to_owned)];
    }
    let rows = case.metrics.iter().enumerate().map(|(index, (name, metric))| {
        let verdict = case.verdicts.iter().find(|verdict| verdict.metric == *name);
        [
            if index == 0 { case.name.clone() } else { String::new() },
            name.clone(),
            number(metric.median),
            number(metric.min),
            number(metric.max),
            paper(Some(metric), verdict),
            verdict.map(judgement).unwrap_or_default(),
        ]
    });
    rows.collect()
}

/// The paper's figure, and its quotient with another case, as far as it gives them.
pub(super) fn paper(metric: Option<&MetricReport>, verdict: Option<&Verdict>) -> String {
    let quotient = verdict.and_then(|it| it.paper_quotient);
    let other = verdict.and_then(|it| it.relative_to.as_deref());
    verdict::of_paper(metric.and_then(|it| it.paper), quotient, other)
}

fn judgement(verdict: &Verdict) -> String {
    let word = match verdict.judgement {
        Judgement::Holds => "holds",
        Judgement::Fails => "FAILS",
        Judgement::Undecided => return "undecided".into(),
        Judgement::NotJudged => return String::new(),
    };
    verdict.reach.map_or_else(|| word.into(), |reach| format!("{word}, {}", certainty(&reach)))
}

/// Open verdicts, invalid runs and warnings of a case, of which so many runs must be valid.
fn remarks(case: &CaseReport, wanted: u32) -> String {
    let mut text = String::new();
    let is_open = |it: &&Verdict| matches!(it.judgement, Judgement::Fails | Judgement::Undecided);
    for verdict in case.verdicts.iter().filter(is_open) {
        let _ = writeln!(text, "{}: {verdict}", case.name);
    }
    let (all, valid) = (case.runs.len(), case.valid_runs().count());
    if valid < all {
        let reasons: BTreeSet<&String> = case.runs.iter().flat_map(|run| &run.reasons).collect();
        let reasons: Vec<&str> = reasons.into_iter().map(String::as_str).collect();
        let is_enough = valid >= wanted as usize;
        let _ = writeln!(
            text,
            "{}: {} of {all} runs not valid, {}: {}",
            case.name,
            all - valid,
            if is_enough { "and repeated" } else { "and too few others" },
            reasons.join("; ")
        );
    }
    let warnings: BTreeSet<&String> = case.runs.iter().flat_map(|run| &run.warnings).collect();
    for warning in warnings {
        let _ = writeln!(text, "{}: {warning}", case.name);
    }
    text
}
