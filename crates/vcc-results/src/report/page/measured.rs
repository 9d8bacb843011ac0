//! Each metric in all cases, next to the paper's figure and the required bounds.

use crate::report::numbers::{number, reach};
use crate::report::outcome::expected_metrics;
use crate::report::table::paper;
use crate::report::{CaseReport, Judgement, MetricReport, Report, Verdict};
use maud::{Markup, html};

pub fn show(report: &Report) -> Markup {
    let (judged, others) = expected_metrics(report);
    html! {
        @if !judged.is_empty() {
            h3 { "Measured and expected" }
            (table(report, &judged, true))
        }
        @if !others.is_empty() {
            details open[judged.is_empty()] {
                summary { "Other metrics (" (others.len()) ")" }
                (table(report, &others, false))
            }
        }
    }
}

fn table(report: &Report, metrics: &[&str], judged: bool) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Metrics of each case" {
            table.metrics {
                thead {
                    tr {
                        th scope="col" { "Case" }
                        th.number scope="col" { "Median" }
                        th.number scope="col" { "Least to greatest" }
                        @if judged {
                            th.number scope="col" { "Median of all runs" }
                            th.number scope="col" { "Paper" }
                            th scope="col" { "Expected" }
                            th scope="col" { "Verdict" }
                        }
                    }
                }
                @for name in metrics { (group(report, name, judged)) }
            }
        }
    }
}

fn group(report: &Report, name: &str, judged: bool) -> Markup {
    let columns = if judged { 7 } else { 3 };
    html! {
        tbody {
            tr.metric {
                th colspan=(columns) scope="rowgroup" {
                    div {
                        code { (name) }
                        @if let Some(text) = report.definitions.get(name) { span { (text) } }
                    }
                }
            }
            @for case in &report.cases { (row(case, name, judged)) }
        }
    }
}

/// None for a case that neither has the metric nor should have it.
fn row(case: &CaseReport, name: &str, judged: bool) -> Markup {
    let metric = case.metrics.get(name);
    let verdict = case.verdicts.iter().find(|verdict| verdict.metric == name);
    html! {
        @if metric.is_some() || verdict.is_some() {
            tr {
                th scope="row" { (case.name) }
                (figures(metric))
                @if judged {
                    td.number { @if let Some(metric) = metric { (of_all_runs(metric)) } }
                    td.number { (paper(metric, verdict)) }
                    (judgement(verdict))
                }
            }
        }
    }
}

fn figures(metric: Option<&MetricReport>) -> Markup {
    html! {
        @match metric {
            Some(MetricReport { median, min, max, .. }) => {
                td.number.median { (number(*median)) }
                td.number { (number(*min)) " to " (number(*max)) }
            }
            None => td.number colspan="2" { "no valid run" },
        }
    }
}

fn judgement(verdict: Option<&Verdict>) -> Markup {
    html! {
        @match verdict {
            Some(verdict) => {
                td { (verdict.wanted(verdict.relative_to.as_deref())) }
                td {
                    (word(verdict))
                    @if let (Some(_), Some(value)) = (&verdict.relative_to, verdict.value) {
                        " at " (number(value))
                        @if let Some(it) = verdict.reach.filter(|it| it.certainty > 0.0) {
                            small { (reach(&it)) }
                        }
                    }
                }
            }
            None => { td {} td {} }
        }
    }
}

/// The confidence interval, which a single run does not have.
fn of_all_runs(metric: &MetricReport) -> Markup {
    html! {
        @if metric.runs < 2 { "one run" }
        @else { (reach(&metric.reach)) }
    }
}

fn word(verdict: &Verdict) -> Markup {
    html! {
        @match verdict.judgement {
            Judgement::Holds => span.verdict.good { "✓ holds" },
            Judgement::Fails if verdict.value.is_none() => span.verdict.bad { "✗ no value" },
            Judgement::Fails => span.verdict.bad { "✗ fails" },
            Judgement::Undecided => span.verdict.doubtful { "? undecided" },
            Judgement::NotJudged => span.verdict.part { "– not judged" },
        }
    }
}
