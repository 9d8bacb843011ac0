//! The ports.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use vcc_view::{PORT_COLUMNS, PortView};

use super::Section;
use super::summary;
use crate::commands::top::model::Model;

pub(super) const SECTION: Section = Section { height, draw };

fn height(model: &Model, of: u16) -> Constraint {
    summary::height(model.ports.len(), of / 4)
}

fn draw(model: &Model, frame: &mut Frame, area: Rect) {
    let room = summary::room(area);
    let mut ports: Vec<_> = model.ports.iter().collect();
    // The busiest come first where not all ports have room.
    if ports.len() > room {
        let rate = |port: &PortView| port.sums.rates.map_or(0.0, |rates| rates.goodput_bits_per_s);
        ports.sort_by(|one, other| {
            rate(other).total_cmp(&rate(one)).then(other.sums.flows.cmp(&one.sums.flows))
        });
    }
    ports.truncate(room);
    summary::draw(frame, area, PORT_COLUMNS, &ports, model.ports.len(), "vcc ports");
}
