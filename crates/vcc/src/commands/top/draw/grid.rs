//! Aligned columns. Where there is no room for all, those of the highest ranks are dropped.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Row, Table};
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

const GAP: u16 = 2;

/// A column that fits.
struct Fitting {
    /// Among the columns shown.
    at: usize,
    heading: String,
    is_text: bool,
    width: u16,
    rank: u8,
}

fn fitting<T>(shown: &[Shown<T>], rows: &[Vec<String>], room: u16) -> Vec<Fitting> {
    let width_of = |text: &str| Line::raw(text).width();
    let fitting = |(at, Shown { column, top }): (usize, &Shown<T>)| {
        let heading = column.heading();
        let cells = rows.iter().map(|row| width_of(&row[at]));
        let width = cells.chain([top.width_chars, width_of(&heading)]).max().unwrap_or(0);
        let width = u16::try_from(width).unwrap_or(u16::MAX);
        Fitting { at, heading, is_text: column.unit.is_text(), width, rank: top.rank }
    };
    let mut kept: Vec<Fitting> = shown.iter().enumerate().map(fitting).collect();
    let taken = |kept: &[Fitting]| {
        let columns = kept.iter().map(|column| u32::from(column.width) + u32::from(GAP));
        columns.sum::<u32>().saturating_sub(GAP.into())
    };
    while taken(&kept) > room.into() && kept.len() > 1 {
        let ranks = kept.iter().enumerate().map(|(at, column)| (column.rank, at));
        let (_, last) = ranks.max().unwrap_or_default();
        kept.remove(last);
    }
    kept
}

/// Numbers are aligned at the right.
fn row<'a>(kept: &'a [Fitting], cell: impl Fn(&'a Fitting) -> &'a str) -> Row<'a> {
    let cells = kept.iter().map(|column| {
        let line = Line::raw(cell(column));
        if column.is_text { line } else { line.right_aligned() }
    });
    Row::new(cells)
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
    let kept = fitting(shown, &visible, area.width);
    let header = row(&kept, |column| &column.heading).style(Modifier::REVERSED);
    let lines = visible.iter().enumerate().map(|(index, cells)| {
        let is_selected = selected == Some(first + index);
        let style = if is_selected {
            Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
        } else {
            Style::new()
        };
        row(&kept, |column| &cells[column.at]).style(style)
    });
    let widths = kept.iter().map(|column| Constraint::Length(column.width));
    frame.render_widget(Table::new(lines, widths).header(header).column_spacing(GAP), area);
}
