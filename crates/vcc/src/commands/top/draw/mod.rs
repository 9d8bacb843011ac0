//! Draws the model. A new part of the screen is a file with a [`Section`], and a line in
//! [`SECTIONS`].

mod detail;
mod flows;
mod grid;
mod help;
mod ports;
mod rules;
mod status;
mod summary;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};

use super::model::Model;

/// A part of the screen, over its whole width.
struct Section {
    /// Its height on a screen of so many lines.
    height: fn(&Model, u16) -> Constraint,
    draw: fn(&Model, &mut Frame, Rect),
}

const SECTIONS: &[Section] = &[
    status::SECTION,
    ports::SECTION,
    rules::SECTION,
    flows::SECTION,
    detail::SECTION,
    help::SECTION,
];

pub fn draw(model: &Model, frame: &mut Frame) {
    let area = frame.area();
    let heights = SECTIONS.iter().map(|section| (section.height)(model, area.height));
    let areas = Layout::vertical(heights).split(area);
    for (section, area) in SECTIONS.iter().zip(areas.iter()) {
        if !area.is_empty() {
            (section.draw)(model, frame, *area);
        }
    }
    if model.has_help {
        help::explain(frame);
    }
}

#[cfg(test)]
mod tests;
