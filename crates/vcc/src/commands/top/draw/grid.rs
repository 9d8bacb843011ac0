//! Aligned columns. Where there is no room for all, those of the highest ranks are dropped.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use vcc_command::output::printable_line;
use vcc_view::{Column, Top};

/// A column on the terminal.
pub struct Shown<T: 'static> {
    column: &'static Column<T>,
    top: Top,
}

/// The columns that `vcc top` has.
pub fn shown<T>(columns: &'static [Column<T>]) -> Vec<Shown<T>> {
    let shown = |column: &'static Column<T>| Some(Shown { column, top: column.top? });
    columns.iter().filter_map(shown).collect()
}

const GAP: usize = 2;

/// A column that fits.
struct Fitting {
    /// Among the columns shown.
    at: usize,
    heading: String,
    is_text: bool,
    width: usize,
    rank: u8,
}

fn fitting<T>(shown: &[Shown<T>], rows: &[Vec<String>], room: usize) -> Vec<Fitting> {
    let fitting = |(at, Shown { column, top }): (usize, &Shown<T>)| {
        let heading = column.heading();
        let cells = rows.iter().map(|row| row[at].chars().count());
        let width = cells.chain([top.width_chars, heading.chars().count()]).max().unwrap_or(0);
        Fitting { at, heading, is_text: column.unit.is_text(), width, rank: top.rank }
    };
    let mut kept: Vec<Fitting> = shown.iter().enumerate().map(fitting).collect();
    let taken = |kept: &[Fitting]| {
        kept.iter().map(|column| column.width + GAP).sum::<usize>().saturating_sub(GAP)
    };
    while taken(&kept) > room && kept.len() > 1 {
        let ranks = kept.iter().enumerate().map(|(at, column)| (column.rank, at));
        let (_, last) = ranks.max().unwrap_or_default();
        kept.remove(last);
    }
    kept
}

/// Numbers are aligned at the right.
fn line<'a>(kept: &'a [Fitting], cell: impl Fn(&'a Fitting) -> &'a str) -> String {
    let cells = kept.iter().map(|column| {
        let (cell, width) = (cell(column), column.width);
        if column.is_text { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
    });
    cells.collect::<Vec<_>>().join(&" ".repeat(GAP))
}

/// The headings, and as many rows as fit, the selected one among them.
pub fn draw<T>(
    frame: &mut Frame,
    area: Rect,
    shown: &[Shown<T>],
    rows: &[&T],
    selected: Option<usize>,
) {
    let room = usize::from(area.height).saturating_sub(1);
    let at = selected.unwrap_or(0);
    let first = at.saturating_sub(room / 2).min(rows.len().saturating_sub(room));
    // A terminal would obey control characters in a name.
    let printable = |row: &&T| -> Vec<String> {
        let cells = shown.iter().map(|shown| shown.column.cell(row));
        cells.map(|cell| printable_line(&cell).into_owned()).collect()
    };
    let visible: Vec<Vec<String>> =
        rows[first..rows.len().min(first + room)].iter().map(printable).collect();
    let width = usize::from(area.width);
    let kept = fitting(shown, &visible, width);
    let header = line(&kept, |column| &column.heading);
    let mut lines = vec![Line::styled(
        format!("{header:<width$}"),
        Style::new().add_modifier(Modifier::REVERSED),
    )];
    for (index, row) in visible.iter().enumerate() {
        let text = line(&kept, |column| &row[column.at]);
        let style = if selected == Some(first + index) {
            Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
        } else {
            Style::new()
        };
        lines.push(Line::styled(format!("{text:<width$}"), style));
    }
    frame.render_widget(ratatui::text::Text::from(lines), area);
}
