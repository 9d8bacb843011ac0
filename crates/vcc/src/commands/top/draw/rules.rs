//! The rules of the host's policy, if it has one.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use vcc_view::units;

use super::Section;
use super::summary::{self, Row, Spec};
use crate::commands::top::model::Model;

pub(super) const SECTION: Section = Section { height, draw };

const HEADINGS: [Spec; 8] = [
    ("RULE", false, 15, 0),
    ("UNDERLAY", false, 8, 3),
    ("MODE", false, 7, 4),
    ("FLOWS", true, 5, 2),
    ("RATE", true, 11, 1),
    ("TOTAL", true, 8, 5),
    ("MARKS/S", true, 6, 6),
    ("RETR/S", true, 6, 7),
];

fn height(model: &Model, of: u16) -> Constraint {
    if model.rules.is_empty() {
        return Constraint::Length(0);
    }
    summary::height(model.rules.len(), of / 5)
}

fn draw(model: &Model, frame: &mut Frame, area: Rect) {
    let room = summary::room(area);
    let mut rules: Vec<_> =
        model.rules.iter().map(|rule| (model.rule_flows(&rule.name), rule)).collect();
    // Rules with live connections come first where not all rules have room.
    if rules.len() > room {
        rules.sort_by_key(|(flows, _)| std::cmp::Reverse(*flows));
    }
    let row = |(flows, rule): (usize, &vcc_view::RuleView)| -> Row {
        let rates = model.rule_rates(&rule.name);
        [
            rule.name.to_string(),
            rule.underlay.clone(),
            rule.mode.clone(),
            flows.to_string(),
            units::bit_rate(rates.goodput_bits_per_s),
            rule.ended.connections.to_string(),
            units::per_s(rates.marks_per_s),
            units::per_s(rates.retransmissions_per_s),
        ]
    };
    let rows: Vec<Row> = rules.into_iter().take(room).map(row).collect();
    summary::draw(frame, area, &HEADINGS, &rows, model.rules.len(), "vcc policy show");
}
