//! The flows.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::text::Line;
use vcc_view::{FLOW_COLUMNS, why_no_flows};

use super::Section;
use super::grid;
use crate::commands::top::model::Model;

pub(super) const SECTION: Section = Section { height: |_, _| Constraint::Min(4), draw };

fn draw(model: &Model, frame: &mut Frame, area: Rect) {
    let flows: Vec<_> = model.flows.iter().collect();
    grid::draw(frame, area, &grid::shown(FLOW_COLUMNS), &flows, model.selected_index());
    if model.flows.is_empty() {
        let below = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
        let mut why = why_no_flows(&model.ports, model.flow_count);
        if model.flow_count > 0 {
            why += ": Esc shows all";
        }
        frame.render_widget(Line::from(why), below);
    }
}
