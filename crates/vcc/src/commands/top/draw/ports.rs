//! The ports.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::text::Line;

use super::Section;
use super::grid::{self, Column};
use crate::commands::top::model::Model;
use crate::units;

pub(super) const SECTION: Section = Section { height, draw };

/// The flows are what the screen is for.
const MOST_LINES: usize = 6;

struct Row {
    cells: [String; 8],
}

const fn column(
    name: &'static str,
    is_number: bool,
    width: usize,
    rank: u8,
    cell: fn(&Row) -> String,
) -> Column<Row> {
    Column { name, is_number, width, rank, cell }
}

const COLUMNS: &[Column<Row>] = &[
    column("PORT", false, 15, 0, |row| row.cells[0].clone()),
    column("UNDERLAY", false, 8, 3, |row| row.cells[1].clone()),
    column("MODE", false, 7, 7, |row| row.cells[2].clone()),
    column("FLOWS", true, 6, 2, |row| row.cells[3].clone()),
    column("RATE", true, 11, 1, |row| row.cells[4].clone()),
    column("MARKS", true, 6, 4, |row| row.cells[5].clone()),
    column("REDUC", true, 6, 6, |row| row.cells[6].clone()),
    column("RETR", true, 6, 5, |row| row.cells[7].clone()),
];

fn height(model: &Model, of: u16) -> Constraint {
    let most = MOST_LINES.min(usize::from(of) / 4);
    let lines = (model.ports.len() + 1).min(most.max(2));
    // And a line between this and the flows.
    Constraint::Length(lines as u16 + 1)
}

fn draw(model: &Model, frame: &mut Frame, mut area: Rect) {
    area.height = area.height.saturating_sub(1);
    let room = usize::from(area.height).saturating_sub(1);
    let rows: Vec<Row> = model
        .ports
        .iter()
        .take(room)
        .map(|port| Row {
            cells: [
                port.port.clone(),
                port.underlay.clone(),
                port.mode.clone(),
                port.flows.to_string(),
                units::bit_rate(model.port_sum(&port.port, |flow| flow.goodput_bits_per_s)),
                units::per_s(model.port_sum(&port.port, |flow| flow.marks_per_s)),
                units::per_s(model.port_sum(&port.port, |flow| flow.reductions_per_s)),
                units::per_s(model.port_sum(&port.port, |flow| flow.retransmissions_per_s)),
            ],
        })
        .collect();
    grid::draw(frame, area, COLUMNS, &rows, None);
    tell_of_more(frame, area, model.ports.len(), room, "vcc ports");
}

/// The last line says so, where there are more than there is room for.
pub(super) fn tell_of_more(
    frame: &mut Frame,
    area: Rect,
    count: usize,
    room: usize,
    command: &str,
) {
    if count <= room || room == 0 {
        return;
    }
    let last = Rect { y: area.bottom() - 1, height: 1, ..area };
    let more = format!("... and {} more: `{command}` lists them", count - (room - 1));
    let width = usize::from(area.width);
    frame.render_widget(Line::from(format!("{more:<width$}")), last);
}
