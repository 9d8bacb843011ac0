//! The ports.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};

use super::Section;
use super::grid::Column;
use super::summary::{self, Row, column};
use crate::commands::top::model::Model;
use crate::units;

pub(super) const SECTION: Section = Section { height, draw };

const COLUMNS: &[Column<Row>] = &[
    column("PORT", false, 15, 0, |row| row[0].clone()),
    column("UNDERLAY", false, 8, 3, |row| row[1].clone()),
    column("MODE", false, 7, 7, |row| row[2].clone()),
    column("FLOWS", true, 6, 2, |row| row[3].clone()),
    column("RATE", true, 11, 1, |row| row[4].clone()),
    column("MARKS", true, 6, 4, |row| row[5].clone()),
    column("REDUC", true, 6, 6, |row| row[6].clone()),
    column("RETR", true, 6, 5, |row| row[7].clone()),
];

fn height(model: &Model, of: u16) -> Constraint {
    summary::height(model.ports.len(), of / 4)
}

fn draw(model: &Model, frame: &mut Frame, area: Rect) {
    let ports = model.ports.iter().take(summary::room(area));
    let rows: Vec<Row> = ports
        .map(|port| {
            [
                port.port.clone(),
                port.underlay.clone(),
                port.mode.clone(),
                port.flows.to_string(),
                units::bit_rate(model.port_sum(&port.port, |flow| flow.goodput_bits_per_s)),
                units::per_s(model.port_sum(&port.port, |flow| flow.marks_per_s)),
                units::per_s(model.port_sum(&port.port, |flow| flow.reductions_per_s)),
                units::per_s(model.port_sum(&port.port, |flow| flow.retransmissions_per_s)),
            ]
        })
        .collect();
    summary::draw(frame, area, COLUMNS, &rows, model.ports.len(), "vcc ports");
}
