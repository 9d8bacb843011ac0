//! Results as one page that needs nothing but itself: for a screen of any size, and for paper.

mod entry;
mod figure;
mod measured;
mod runs;
mod section;
mod summary;

use super::{Report, ResultFile, Sources};
use entry::Entry;
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("style.css");
/// Nothing is loaded and nothing is run, even if other content has come into the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// The results in the order of their experiments' names. `now`: the sources that such a result depends
/// on, as they are now; None if they are unknown.
pub fn render_page(results: &[ResultFile], now: &dyn Fn(&Report) -> Option<Sources>) -> String {
    let entries = Entry::all(results, now);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (summary::TITLE) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#results" { "Skip to the results" }
                (navigation(&entries))
                main id="results" {
                    (summary::show(&entries))
                    @for entry in &entries { (section::show(entry)) }
                }
            }
        }
    };
    page.into_string() + "\n"
}

fn navigation(entries: &[Entry]) -> Markup {
    html! {
        nav aria-label="Experiments" {
            p { a href="#top" { "All results" } }
            ul {
                @for entry in entries {
                    li {
                        a href={ "#" (entry.anchor) } {
                            span class={ "mark " (entry.tone()) } aria-hidden="true" {
                                (entry.mark())
                            }
                            span { (entry.name()) }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
