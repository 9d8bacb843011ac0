//! The rules of the host's policy, where it has one.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};

use super::Section;
use super::grid::{self, Column};
use super::ports::tell_of_more;
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
    column("RULE", false, 15, 0, |row| row.cells[0].clone()),
    column("UNDERLAY", false, 8, 3, |row| row.cells[1].clone()),
    column("MODE", false, 7, 4, |row| row.cells[2].clone()),
    column("FLOWS", true, 6, 2, |row| row.cells[3].clone()),
    column("RATE", true, 11, 1, |row| row.cells[4].clone()),
    column("EVER", true, 8, 5, |row| row.cells[5].clone()),
    column("MARKS", true, 6, 6, |row| row.cells[6].clone()),
    column("RETR", true, 6, 7, |row| row.cells[7].clone()),
];

fn height(model: &Model, of: u16) -> Constraint {
    if model.rules.is_empty() {
        return Constraint::Length(0);
    }
    let most = MOST_LINES.min(usize::from(of) / 5);
    let lines = (model.rules.len() + 1).min(most.max(2));
    // And a line between this and the flows.
    Constraint::Length(lines as u16 + 1)
}

fn draw(model: &Model, frame: &mut Frame, mut area: Rect) {
    area.height = area.height.saturating_sub(1);
    let room = usize::from(area.height).saturating_sub(1);
    let live = |rule: &str| model.rule_sum(rule, |_| Some(1.0));
    // Of a thousand rules those are of interest that something happens under.
    let mut rules: Vec<_> = model.rules.iter().map(|rule| (live(&rule.rule), rule)).collect();
    if rules.len() > room {
        rules.sort_by(|a, b| b.0.total_cmp(&a.0));
    }
    let rows: Vec<Row> = rules
        .into_iter()
        .take(room)
        .map(|(flows, rule)| Row {
            cells: [
                rule.rule.clone(),
                rule.underlay.clone(),
                rule.mode.clone(),
                format!("{flows:.0}"),
                units::bit_rate(model.rule_sum(&rule.rule, |flow| flow.goodput_bits_per_s)),
                rule.connections.to_string(),
                units::per_s(model.rule_sum(&rule.rule, |flow| flow.marks_per_s)),
                units::per_s(model.rule_sum(&rule.rule, |flow| flow.retransmissions_per_s)),
            ],
        })
        .collect();
    grid::draw(frame, area, COLUMNS, &rows, None);
    tell_of_more(frame, area, model.rules.len(), room, "vcc policy show");
}
