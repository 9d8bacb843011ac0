//! The block of one experiment.

use super::curve::{curve, is_in_curve};
use super::origin::{build, command, machine, time};
use super::text::{code, line, paragraphs, table, wrapped};
use crate::report::numbers::{certainty, number};
use crate::report::outcome::{expected_metrics, why_figures_only};
use crate::report::{CaseReport, Judgement, MetricReport, Outcome, Report, Verdict};

const HEAD: [&str; 7] =
    ["metric", "case", "median (least to greatest)", "valid runs", "paper", "required", "verdict"];

pub fn block(report: &Report) -> String {
    let (expected, others) = expected_metrics(report);
    let metrics = if expected.is_empty() { others } else { expected };
    let rows: Vec<Vec<String>> = metrics
        .iter()
        .flat_map(|metric| {
            let cases = report.cases.iter().filter(|case| !is_in_curve(report, case, metric));
            cases.filter_map(|case| row(case, metric))
        })
        .collect();
    let mut parts = vec![
        format!("### {}: {}", code(&report.experiment), line(&report.title)),
        conclusion(report),
        table(&HEAD, &rows).trim_end().to_owned(),
        definitions(report, &metrics),
    ];
    parts.splice(3..3, curve(report));
    let notes = [("Paper", Some(report.paper.as_str())), ("Scale", report.scale.as_deref())];
    for (title, text) in notes {
        let text = text.map(paragraphs).filter(|text| !text.is_empty());
        parts.extend(text.map(|text| wrapped_paragraphs(&format!("*{title}:* {text}"))));
    }
    parts.push(wrapped(&origin(report)));
    format!("\n{}\n\n", parts.join("\n\n"))
}

fn wrapped_paragraphs(text: &str) -> String {
    text.split("\n\n").map(wrapped).collect::<Vec<_>>().join("\n\n")
}

/// None for a case that neither has the metric nor should have it.
fn row(case: &CaseReport, metric: &str) -> Option<Vec<String>> {
    let measured = case.metrics.get(metric);
    let verdict = case.verdicts.iter().find(|verdict| verdict.metric == metric);
    if measured.is_none() && verdict.is_none() {
        return None;
    }
    Some(vec![
        code(metric),
        code(&case.name),
        measured.map_or_else(|| "no valid run".into(), figure),
        measured.map_or(0, |it| it.runs).to_string(),
        measured.and_then(|it| it.paper).map(number).unwrap_or_default(),
        verdict.map(required).unwrap_or_default(),
        verdict.map(judgement).unwrap_or_default(),
    ])
}

/// `0.099 (0.089 to 0.116)`
pub fn figure(metric: &MetricReport) -> String {
    let MetricReport { median, min, max, .. } = *metric;
    if min == max {
        return number(median);
    }
    format!("{} ({} to {})", number(median), number(min), number(max))
}

pub fn required(verdict: &Verdict) -> String {
    verdict.wanted(verdict.relative_to.as_deref().map(code).as_deref())
}

pub fn judgement(verdict: &Verdict) -> String {
    let word = match verdict.judgement {
        Judgement::Holds => "holds",
        Judgement::Fails => "**fails**",
        Judgement::Undecided => "undecided",
        Judgement::NotJudged => return "not judged".into(),
    };
    let sure = verdict.reach.filter(|_| verdict.judgement != Judgement::Undecided);
    let mut text = sure.map_or_else(|| word.into(), |it| format!("{word}, {}", certainty(&it)));
    if let (Some(_), Some(value)) = (&verdict.relative_to, verdict.value) {
        text += &format!(" (is {})", number(value));
    }
    text
}

fn conclusion(report: &Report) -> String {
    let which = if report.complete { "" } else { ", selected cases only" };
    let word = match report.outcome {
        Outcome::Reproduced => "Reproduced".into(),
        Outcome::NotReproduced => "**Not reproduced**".into(),
        Outcome::Undecided => "Undecided".into(),
        Outcome::FiguresOnly => format!("Figures only ({})", why_figures_only(report)),
        Outcome::NotValid => "**Not valid**: too few valid runs".to_owned(),
    };
    format!("{word}{which}.")
}

fn definitions(report: &Report, metrics: &[&str]) -> String {
    let defined = metrics.iter().filter_map(|name| {
        let text = report.definitions.get(*name)?;
        Some(format!("{}: {}", code(name), line(text)))
    });
    wrapped(&(defined.collect::<Vec<_>>().join("; ") + "."))
}

fn origin(report: &Report) -> String {
    let schedule = &report.schedule;
    format!(
        "Measured on {} with {}: {} runs of {} s per case, {}, stack {}, {}; {}. {}",
        time(report.finished_unix_s),
        build(report.vcc_version.as_deref()),
        schedule.runs,
        schedule.measured_s,
        report.backend,
        report.stack,
        report.seeds(),
        machine(&report.machine),
        command(&report.command),
    )
}
