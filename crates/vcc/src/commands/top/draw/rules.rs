//! The rules of the host's policy, where it has one.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};

use super::Section;
use super::grid::Column;
use super::summary::{self, Row, column};
use crate::commands::top::model::Model;
use crate::units;

pub(super) const SECTION: Section = Section { height, draw };

const COLUMNS: &[Column<Row>] = &[
    column("RULE", false, 15, 0, |row| row[0].clone()),
    column("UNDERLAY", false, 8, 3, |row| row[1].clone()),
    column("MODE", false, 7, 4, |row| row[2].clone()),
    column("FLOWS", true, 6, 2, |row| row[3].clone()),
    column("RATE", true, 11, 1, |row| row[4].clone()),
    column("EVER", true, 8, 5, |row| row[5].clone()),
    column("MARKS", true, 6, 6, |row| row[6].clone()),
    column("RETR", true, 6, 7, |row| row[7].clone()),
];

fn height(model: &Model, of: u16) -> Constraint {
    if model.rules.is_empty() {
        return Constraint::Length(0);
    }
    summary::height(model.rules.len(), of / 5)
}

fn draw(model: &Model, frame: &mut Frame, area: Rect) {
    let room = summary::room(area);
    let live = |rule: &str| model.rule_sum(rule, |_| Some(1.0));
    // Of a thousand rules those are of interest that something happens under.
    let mut rules: Vec<_> = model.rules.iter().map(|rule| (live(&rule.rule), rule)).collect();
    if rules.len() > room {
        rules.sort_by(|a, b| b.0.total_cmp(&a.0));
    }
    let rows: Vec<Row> = rules
        .into_iter()
        .take(room)
        .map(|(flows, rule)| {
            [
                rule.rule.clone(),
                rule.underlay.clone(),
                rule.mode.clone(),
                format!("{flows:.0}"),
                units::bit_rate(model.rule_sum(&rule.rule, |flow| flow.goodput_bits_per_s)),
                rule.connections.to_string(),
                units::per_s(model.rule_sum(&rule.rule, |flow| flow.marks_per_s)),
                units::per_s(model.rule_sum(&rule.rule, |flow| flow.retransmissions_per_s)),
            ]
        })
        .collect();
    summary::draw(frame, area, COLUMNS, &rows, model.rules.len(), "vcc policy show");
}
