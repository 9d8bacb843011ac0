//! One result: what the paper showed, what was measured here, and how to repeat it.

use super::entry::Entry;
use super::summary::badge;
use super::{figure, measured, runs};
use crate::report::figure::recorded;
use crate::report::outcome::why_figures_only;
use crate::report::{Outcome, when};
use maud::{Markup, html};

/// A figure of more panels than this has the width of the page.
const FEW_PANELS: usize = 4;

pub fn show(entry: &Entry) -> Markup {
    let report = entry.report;
    let recorded = recorded(report);
    html! {
        section id=(entry.anchor) aria-labelledby={ "title:" (entry.anchor) } {
            header {
                p.id { (entry.name()) }
                h2 id={ "title:" (entry.anchor) } { (report.title) }
                p.facts {
                    (badge(entry)) " "
                    span { (entry.how()) }
                    span { (report.seeds()) }
                    span { (entry.valid_runs()) " valid runs of " (entry.all_runs()) }
                    @if let Some(age) = &entry.age { span { (age.to_string()) } }
                }
            }
            @if let Some(text) = &report.in_short { p.short { (text) } }
            @if report.outcome == Outcome::FiguresOnly {
                p.note { "Figures only: " (why_figures_only(report)) "." }
            }
            (runs::doubts(report))
            div class=(arrangement(entry)) {
                @if !figure::is_empty(&report.figure) {
                    (figure::show(&report.figure, figure::caption(&report.figure)))
                }
                div.words {
                    h3 { "The paper" }
                    (prose(&report.paper))
                    @if let Some(scale) = &report.scale {
                        h3 { "Scale of this run" }
                        (prose(scale))
                    }
                }
            }
            (measured::show(report))
            @if !recorded.is_empty() {
                details {
                    summary { "Over time, in the first valid run of each case" }
                    @for it in &recorded { (figure::show(it, "")) }
                }
            }
            (runs::all(report))
            (origin(entry))
            p.back { a href="#top" { "Back to all results" } }
        }
    }
}

fn arrangement(entry: &Entry) -> &'static str {
    let wide = entry.report.figure.panel_count() > FEW_PANELS;
    if wide { "against wide" } else { "against" }
}

/// Paragraphs, which empty lines divide.
fn prose(text: &str) -> Markup {
    let paragraphs = text.split("\n\n").map(str::trim).filter(|text| !text.is_empty());
    html! { @for paragraph in paragraphs { p { (paragraph) } } }
}

fn origin(entry: &Entry) -> Markup {
    let (report, machine) = (entry.report, &entry.report.machine);
    html! {
        h3 { "Origin" }
        pre.command tabindex="0" { code { (report.command) } }
        dl.origin {
            div { dt { "Machine" } dd {
                @if !machine.cpu.is_empty() { (machine.cpu) ", " }
                (machine.cpus) " CPUs, Linux " (machine.kernel)
            } }
            @if let Some(time) = when::utc(report.finished_unix_s) {
                div { dt { "Finished" } dd { (time) } }
            }
            div { dt { "Read from" } dd { code { (entry.path.display().to_string()) } } }
        }
    }
}
