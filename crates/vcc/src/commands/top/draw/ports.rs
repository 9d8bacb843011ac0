//! The ports.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use vcc_view::PORT_COLUMNS;

use super::Section;
use super::summary;
use crate::commands::top::model::Model;

pub(super) const SECTION: Section = Section { height, draw };

fn height(model: &Model, of: u16) -> Constraint {
    summary::height(model.ports.len(), of / 4)
}

fn draw(model: &Model, frame: &mut Frame, area: Rect) {
    let ports: Vec<_> = model.ports.iter().take(summary::room(area)).collect();
    summary::draw(frame, area, PORT_COLUMNS, &ports, model.ports.len(), "vcc ports");
}
