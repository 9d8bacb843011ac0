//! Aligned columns, of which those that matter least give way where there is no room.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

use crate::output::printable_line;

pub struct Column<T> {
    pub name: &'static str,
    /// Numbers stand at the right.
    pub is_number: bool,
    /// Never narrower, so that figures do not jump about as they change.
    pub width: usize,
    /// The lower ones stay longer.
    pub rank: u8,
    pub cell: fn(&T) -> String,
}

const GAP: usize = 2;

/// A name may hold what a terminal obeys, which here would be left out without a word.
fn told<T>(column: &Column<T>, row: &T) -> String {
    printable_line(&(column.cell)(row)).into_owned()
}

/// The columns that fit, with their widths.
fn fitting<'a, T>(
    columns: &'a [Column<T>],
    rows: &[T],
    room: usize,
) -> Vec<(&'a Column<T>, usize)> {
    let width = |column: &Column<T>| {
        let cells = rows.iter().map(|row| told(column, row).chars().count());
        cells.chain([column.width, column.name.chars().count()]).max().unwrap_or(0)
    };
    let mut kept: Vec<_> = columns.iter().map(|column| (column, width(column))).collect();
    let taken = |kept: &[(&Column<T>, usize)]| {
        kept.iter().map(|(_, width)| width + GAP).sum::<usize>().saturating_sub(GAP)
    };
    while taken(&kept) > room && kept.len() > 1 {
        let ranks = kept.iter().enumerate().map(|(at, (column, _))| (column.rank, at));
        let (_, least) = ranks.max().unwrap_or_default();
        kept.remove(least);
    }
    kept
}

fn line<T>(kept: &[(&Column<T>, usize)], cell: impl Fn(&Column<T>) -> String) -> String {
    let cells = kept.iter().map(|(column, width)| {
        let width = *width;
        let cell = cell(column);
        if column.is_number { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
    });
    cells.collect::<Vec<_>>().join(&" ".repeat(GAP))
}

/// The header, and as many rows as there is room for: the selected one is among them.
pub fn draw<T>(
    frame: &mut Frame,
    area: Rect,
    columns: &[Column<T>],
    rows: &[T],
    selected: Option<usize>,
) {
    let room = usize::from(area.height).saturating_sub(1);
    let at = selected.unwrap_or(0);
    let first = at.saturating_sub(room / 2).min(rows.len().saturating_sub(room));
    let visible = &rows[first..rows.len().min(first + room)];
    let width = usize::from(area.width);
    let kept = fitting(columns, visible, width);
    let header = line(&kept, |column| column.name.to_owned());
    let mut lines = vec![Line::styled(
        format!("{header:<width$}"),
        Style::new().add_modifier(Modifier::REVERSED),
    )];
    for (index, row) in visible.iter().enumerate() {
        let text = line(&kept, |column| told(column, row));
        let style = if selected == Some(first + index) {
            Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
        } else {
            Style::new()
        };
        lines.push(Line::styled(format!("{text:<width$}"), style));
    }
    frame.render_widget(ratatui::text::Text::from(lines), area);
}
