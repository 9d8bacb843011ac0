//! Figures, in panels that find room side by side or one below the other.

use crate::report::Figure;
use crate::report::svg;
use maud::{Markup, PreEscaped, html};
use vcc_plot::Ink;

pub fn show(figure: &Figure, caption: &str) -> Markup {
    let drawn = svg::for_page(figure);
    html! {
        figure {
            @if !drawn.legend.is_empty() {
                ul.legend {
                    @for (number, name) in drawn.legend.iter().enumerate() {
                        li { (swatch(Ink::Series(number))) (name) }
                    }
                }
            }
            div class=(if drawn.panels.len() == 1 { "panels single" } else { "panels" }) {
                @for panel in &drawn.panels { (PreEscaped(panel)) }
            }
            @if !caption.is_empty() { figcaption { (caption) } }
        }
    }
}

fn swatch(ink: Ink) -> Markup {
    let dashed = if ink.is_dashed() { " dashed" } else { "" };
    html! { span class={ "swatch " (ink.class()) (dashed) } {} }
}

/// Whether there is something to see.
pub fn is_empty(figure: &Figure) -> bool {
    match figure {
        Figure::Bars { panels, .. } => panels.iter().all(|panel| panel.bars.is_empty()),
        Figure::Lines { panels, .. } => {
            panels.iter().flat_map(|panel| &panel.lines).all(|line| line.points.is_empty())
        }
    }
}

/// Explains a figure.
pub fn caption(figure: &Figure) -> &'static str {
    match figure {
        Figure::Bars { .. } => {
            "Bars are medians of the valid runs, whiskers the least and the \
                                greatest of them."
        }
        Figure::Lines { .. } => "",
    }
}
