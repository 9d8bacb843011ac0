//! The rules of the host's policy, if it has one.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use vcc_view::RULE_COLUMNS;

use super::Section;
use super::summary;
use crate::commands::top::model::Model;

pub(super) const SECTION: Section = Section { height, draw };

fn height(model: &Model, of: u16) -> Constraint {
    if model.rules.is_empty() {
        return Constraint::Length(0);
    }
    summary::height(model.rules.len(), of / 5)
}

fn draw(model: &Model, frame: &mut Frame, area: Rect) {
    let room = summary::room(area);
    let mut rules: Vec<_> = model.rules.iter().collect();
    // Rules with live connections come first where not all rules have room.
    if rules.len() > room {
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.sums.flows));
    }
    rules.truncate(room);
    summary::draw(frame, area, RULE_COLUMNS, &rules, model.rules.len(), "vcc policy show");
}
