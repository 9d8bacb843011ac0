//! The table at the top: every result in a line.

use super::entry::Entry;
use crate::report::outcome::verdicts;
use crate::report::{Age, Judgement, Outcome, when};
use maud::{Markup, html};

pub const TITLE: &str = "vcc: results of the experiments";

pub fn show(entries: &[Entry]) -> Markup {
    html! {
        header id="top" {
            h1 { (TITLE) }
            p.lead { (counted(entries)) }
        }
        table.summary {
            thead {
                tr {
                    th scope="col" { "Experiment" }
                    th scope="col" { "Verdict" }
                    th scope="col" { "Backend" }
                    th.number scope="col" { "Expectations that hold" }
                    th.number scope="col" { "Valid runs" }
                    th scope="col" { "When and where" }
                }
            }
            tbody { @for entry in entries { (row(entry)) } }
        }
        dl.terms {
            div {
                dt { "Reproduced" }
                dd { "Every case has enough valid runs of full length, and the median of all possible \
                      runs is within the experiment's bounds, with the stated confidence. "
                      em { "Not reproduced" } ": it is outside one of them." }
            }
            div {
                dt { "Undecided" }
                dd { "The runs do not decide on which side of a bound that median is; more runs do." }
            }
            div {
                dt { "Figures only" }
                dd { "The runs were short or few, or the experiment has no expectations: figures \
                      without a verdict." }
            }
            div {
                dt { "Not valid" }
                dd { "Too many runs are invalid: frames late or lost outside the emulated queues, \
                      too little goodput, a busy machine. Figures leave them out." }
            }
            div {
                dt { "Selected cases" }
                dd { "Only some of the experiment's cases were run." }
            }
            div {
                dt { "Live, virtual" }
                dd { "The hosts are network namespaces in real time, or kernels of their own in \
                      virtual time. " em { "Quick" } " runs are fewer and shorter, for a first look." }
            }
            div {
                dt { "Current, stale" }
                dd { "The sources that the figures depend on are those of the " code { "vcc-lab" }
                      " that made this page, or the named parts differ: " code { "vcc-lab renew" }
                      " measures again." }
            }
        }
    }
}

fn row(entry: &Entry) -> Markup {
    let report = entry.report;
    let judged = || verdicts(&report.cases).filter(|it| it.judgement != Judgement::NotJudged);
    let holding = judged().filter(|verdict| verdict.judgement == Judgement::Holds).count();
    let machine = format!("Linux {}, {} CPUs", report.machine.kernel, report.machine.cpus);
    html! {
        tr {
            th scope="row" {
                a href={ "#" (entry.anchor) } { (report.experiment) }
                span.title { (report.title) }
            }
            td { (badge(entry)) }
            td data-name="Backend" { (entry.how()) }
            td.number data-name="Expectations that hold" {
                @if judged().next().is_none() { "none judged" } @else { (holding) " of " (judged().count()) }
            }
            td.number data-name="Valid runs" { (entry.valid_runs()) " of " (entry.all_runs()) }
            td.origin data-name="When and where" {
                @if let Some(time) = when::utc(report.finished_unix_s) { (time) br; }
                (machine)
                @if let Some(age) = &entry.age { br; (age.to_string()) }
            }
        }
    }
}

/// The verdict in a word, a mark and a colour.
pub fn badge(entry: &Entry) -> Markup {
    html! {
        span class={ "badge " (entry.tone()) } {
            span aria-hidden="true" { (entry.mark()) " " }
            (entry.verdict())
        }
    }
}

fn counted(entries: &[Entry]) -> String {
    let results = match entries.len() {
        1 => "1 result".to_owned(),
        count => format!("{count} results"),
    };
    let of = |wanted| entries.iter().filter(|it| it.report.outcome == wanted).count();
    let kinds = [
        (of(Outcome::Reproduced), "reproduced"),
        (of(Outcome::NotReproduced), "not reproduced"),
        (of(Outcome::Undecided), "undecided"),
        (of(Outcome::FiguresOnly), "with figures only"),
        (of(Outcome::NotValid), "not valid"),
    ];
    let kinds = kinds.into_iter().filter(|(count, _)| *count > 0);
    let kinds: Vec<String> = kinds.map(|(count, what)| format!("{count} {what}")).collect();
    let is_stale = |it: &&Entry| it.age.as_ref().is_some_and(|age| *age != Age::Current);
    let stale = match entries.iter().filter(is_stale).count() {
        0 => String::new(),
        1 => " 1 is stale.".into(),
        count => format!(" {count} are stale."),
    };
    format!("{results}: {}.{stale}", kinds.join(", "))
}
