//! The ports.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use vcc_view::units;

use super::Section;
use super::summary::{self, Row, Spec};
use crate::commands::top::model::Model;

pub(super) const SECTION: Section = Section { height, draw };

const HEADINGS: [Spec; 8] = [
    ("PORT", false, 15, 0),
    ("UNDERLAY", false, 8, 3),
    ("MODE", false, 7, 7),
    ("FLOWS", true, 5, 2),
    ("RATE", true, 11, 1),
    ("MARKS/S", true, 6, 4),
    ("REDUC/S", true, 6, 6),
    ("RETR/S", true, 6, 5),
];

fn height(model: &Model, of: u16) -> Constraint {
    summary::height(model.ports.len(), of / 4)
}

fn draw(model: &Model, frame: &mut Frame, area: Rect) {
    let row = |(index, port): (usize, &vcc_view::PortView)| -> Row {
        let rates = model.port_rates(index);
        [
            port.port.clone(),
            port.underlay.clone(),
            port.mode.clone(),
            port.flows.to_string(),
            units::bit_rate(rates.goodput_bits_per_s),
            units::per_s(rates.marks_per_s),
            units::per_s(rates.reductions_per_s),
            units::per_s(rates.retransmissions_per_s),
        ]
    };
    let ports = model.ports.iter().enumerate().take(summary::room(area));
    let rows: Vec<Row> = ports.map(row).collect();
    summary::draw(frame, area, &HEADINGS, &rows, model.ports.len(), "vcc ports");
}
