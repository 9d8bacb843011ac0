//! The last line, and the explanation of the keys.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Clear, Paragraph};
use vcc_command::output::printable_line;

use super::Section;
use crate::commands::top::keys::orders;
use crate::commands::top::model::Model;

pub(super) const SECTION: Section = Section { height: |_, _| Constraint::Length(1), draw };

const KEYS: [(&str, &str); 7] = [
    ("q", "quit"),
    ("/", "filter"),
    ("<>", "order"),
    ("i", "invert"),
    ("p", "pause"),
    ("Enter", "detail"),
    ("?", "help"),
];

fn draw(model: &Model, frame: &mut Frame, area: Rect) {
    let line = if model.is_typing {
        let hint = "  (words, ADDRESS, :PORT, ADDRESS/BITS; Enter keeps it, Esc shows all)";
        Line::from(vec!["/".bold(), model.typed.clone().into(), "_".into(), hint.dim()])
    } else if let Some(note) = &model.note {
        Line::styled(printable_line(note), Style::new().reversed())
    } else {
        let mut spans: Vec<Span> = Vec::new();
        for (key, what) in KEYS {
            spans.push(key.bold());
            spans.push(format!(" {what}  ").into());
        }
        if !model.typed.is_empty() {
            spans.push(format!("only: {}", model.typed).into());
        }
        Line::from(spans)
    };
    frame.render_widget(line, area);
}

/// A box over everything else.
pub(super) fn explain(frame: &mut Frame) {
    let key = |key: &str, what: &str| {
        Line::from(vec![format!(" {key:<11}").bold(), what.to_owned().into()])
    };
    let mut lines = vec![
        key("q, Ctrl-C", "quit"),
        key("/", "show the flows that match every word: an end, or part of a text"),
        key("Esc", "show all flows"),
        key("p, Space", "pause, resume"),
        key("Enter", "show or hide the detail of the selected flow"),
        key("arrows", "select a flow; Page Up, Page Down, Home, End too"),
        key("< >", "change the order; i inverts it"),
    ];
    for orders in orders().chunks(3) {
        let orders: Vec<String> =
            orders.iter().map(|(key, sort)| format!("{key} {}", sort.name())).collect();
        lines.push(key("", &orders.join("   ")));
    }
    lines.push(Line::from(" docs/seeing.md explains the columns"));
    let all = frame.area();
    let width = 76.min(all.width);
    let height = (lines.len() as u16 + 2).min(all.height);
    let area = Rect { x: (all.width - width) / 2, y: (all.height - height) / 2, width, height };
    frame.render_widget(Clear, area);
    let block = Block::bordered().title(" Keys ");
    frame.render_widget(Paragraph::new(Text::from(lines)).block(block), area);
}
