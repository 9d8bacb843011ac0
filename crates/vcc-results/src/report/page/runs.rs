//! Every run: its validity, and in virtual time its frame log's hash.

use crate::report::{CaseReport, Report, RunReport};
use maud::{Markup, html};
use std::collections::BTreeMap;

/// Invalid runs and warnings.
pub fn doubts(report: &Report) -> Markup {
    let doubtful: Vec<_> = report.cases.iter().filter(|case| !said_of(case).is_empty()).collect();
    html! {
        @if !doubtful.is_empty() {
            aside.doubts {
                h3 { "Invalid runs and warnings" }
                ul {
                    @for case in doubtful {
                        @for text in said_of(case) { li { strong { (case.name) } ": " (text) } }
                    }
                }
            }
        }
    }
}

fn said_of(case: &CaseReport) -> Vec<String> {
    let (all, valid) = (case.runs.len(), case.valid_runs().count());
    let mut notes = Vec::new();
    if !case.valid {
        notes.push(format!("has {valid} valid runs of {all}, fewer than requested"));
    }
    let reasons = case.runs.iter().flat_map(|run| &run.reasons);
    notes.extend(alike(reasons).map(|(text, count)| format!("{} not valid: {text}", runs(count))));
    let warnings = case.runs.iter().flat_map(|run| &run.warnings);
    notes.extend(alike(warnings).map(|(text, count)| format!("{}: {text}", runs(count))));
    notes
}

fn runs(count: usize) -> String {
    if count == 1 { "1 run".into() } else { format!("{count} runs") }
}

/// Texts that differ only in their figures appear once, with their number; all of them are listed
/// with their runs.
fn alike<'a>(texts: impl Iterator<Item = &'a String>) -> impl Iterator<Item = (String, usize)> {
    let mut kinds: BTreeMap<String, Vec<&String>> = BTreeMap::new();
    for text in texts {
        let kind = text.chars().filter(|c| !c.is_ascii_digit()).collect();
        kinds.entry(kind).or_default().push(text);
    }
    kinds.into_values().map(|texts| {
        let differ = texts.iter().any(|text| *text != texts[0]);
        let text = if differ { format!("such as {}", texts[0]) } else { texts[0].clone() };
        (text, texts.len())
    })
}

pub fn all(report: &Report) -> Markup {
    let of_all = || report.cases.iter().flat_map(|case| &case.runs);
    let count = of_all().count();
    let has_frames = of_all().any(|run| run.frame_log.is_some());
    html! {
        @if count > 0 {
            details {
                summary {
                    @if has_frames { "Runs and their frame logs (" } @else { "Runs (" }
                    (count) ")"
                }
                @if has_frames {
                    p.note { "A frame log's hash covers every frame that left or reached a guest, \
                              with its time; the command below reproduces it." }
                }
                div.scroll tabindex="0" role="region" aria-label="Every run" {
                    table.runs {
                        thead {
                            tr {
                                th scope="col" { "Case" }
                                th.number scope="col" { "Seed" }
                                th scope="col" { "Valid" }
                                @if has_frames {
                                    th.number scope="col" { "Frames" }
                                    th scope="col" { "Frame log's hash" }
                                }
                            }
                        }
                        tbody {
                            @for case in &report.cases {
                                @for run in &case.runs { (row(case, run, has_frames)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn row(case: &CaseReport, run: &RunReport, has_frames: bool) -> Markup {
    html! {
        tr {
            th scope="row" { (case.name) }
            td.number { (run.seed) }
            td {
                @if run.valid { "yes" } @else { "no: " (run.reasons.join("; ")) }
            }
            @if has_frames {
                td.number { @if let Some(log) = &run.frame_log { (log.frames) } }
                td { @if let Some(log) = &run.frame_log { code { (log.hash) } } }
            }
        }
    }
}
