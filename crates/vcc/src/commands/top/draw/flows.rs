//! The flows.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::text::Line;
use vcc_view::{COLUMNS, Column, FlowView};

use super::Section;
use super::grid::{self, Heading};
use crate::commands::top::model::Model;

pub(super) const SECTION: Section = Section { height: |_, _| Constraint::Min(4), draw };

fn columns() -> impl Iterator<Item = &'static Column> {
    COLUMNS.iter().filter(|column| column.top.is_some())
}

fn heading(column: &Column) -> Heading {
    Heading {
        name: column.heading(),
        is_number: !column.unit.is_text(),
        width: column.unit.width_chars(),
        rank: column.top.map_or(0, |top| top.rank),
    }
}

fn draw(model: &Model, frame: &mut Frame, area: Rect) {
    let headings: Vec<Heading> = columns().map(heading).collect();
    let cells = |flow: &FlowView| columns().map(|column| column.cell(flow)).collect();
    grid::draw(frame, area, &headings, &model.flows, cells, model.selected_index());
    if model.flows.is_empty() {
        let below = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
        let why = match (model.ports.is_empty(), model.flow_count) {
            (true, _) => "vcc is attached nowhere: `vcc attach DEV`",
            (_, 0) => "no connections: new ones are shown as they begin",
            _ => "no connection matches the filter: Esc shows all",
        };
        frame.render_widget(Line::from(why), below);
    }
}
