//! The first line: totals, and the order.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use vcc_view::units;

use super::Section;
use crate::commands::top::model::Model;

pub(super) const SECTION: Section = Section { height: |_, _| Constraint::Length(1), draw };

fn draw(model: &Model, frame: &mut Frame, area: Rect) {
    let count = match (model.flows.len(), model.flow_count) {
        (shown, all) if shown == all => counted(all, "flow"),
        (shown, all) => format!("{shown} of {}", counted(all, "flow")),
    };
    let rate = units::bit_rate(model.goodput_bits_per_s());
    let direction = if model.sort.is_reversed() { ", inverted" } else { "" };
    let mut spans = vec![
        Span::styled("vcc top", Style::new().bold()),
        format!("  {}", counted(model.ports.len(), "port")).into(),
        format!("  {count}  {rate}  by {}{direction}", model.sort.name()).into(),
    ];
    if model.is_paused() {
        spans.push("  ".into());
        spans.push(Span::styled(" PAUSED ", Style::new().reversed()));
    }
    frame.render_widget(Line::from(spans), area);
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
