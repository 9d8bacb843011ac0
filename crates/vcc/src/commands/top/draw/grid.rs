//! Aligned columns. Where there is no room for all, those of the highest ranks are dropped.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

use crate::output::printable_line;

#[derive(Clone)]
pub struct Heading {
    pub name: String,
    /// Numbers are aligned at the right.
    pub is_number: bool,
    /// The least width, so that changing figures do not move the columns.
    pub width: usize,
    pub rank: u8,
}

const GAP: usize = 2;

/// The columns that fit: their index, heading, and width.
fn fitting<'a>(
    headings: &'a [Heading],
    rows: &[Vec<String>],
    room: usize,
) -> Vec<(usize, &'a Heading, usize)> {
    let width = |at: usize, heading: &Heading| {
        let cells = rows.iter().map(|row| row[at].chars().count());
        cells.chain([heading.width, heading.name.chars().count()]).max().unwrap_or(0)
    };
    let mut kept: Vec<_> = headings
        .iter()
        .enumerate()
        .map(|(at, heading)| (at, heading, width(at, heading)))
        .collect();
    let taken = |kept: &[(usize, &Heading, usize)]| {
        kept.iter().map(|(_, _, width)| width + GAP).sum::<usize>().saturating_sub(GAP)
    };
    while taken(&kept) > room && kept.len() > 1 {
        let ranks = kept.iter().enumerate().map(|(at, (_, heading, _))| (heading.rank, at));
        let (_, last) = ranks.max().unwrap_or_default();
        kept.remove(last);
    }
    kept
}

fn line<'a>(kept: &[(usize, &Heading, usize)], cell: impl Fn(usize) -> &'a str) -> String {
    let cells = kept.iter().map(|(at, heading, width)| {
        let (cell, width) = (cell(*at), *width);
        if heading.is_number { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
    });
    cells.collect::<Vec<_>>().join(&" ".repeat(GAP))
}

/// The headings, and as many rows as fit, the selected one among them. `cells` gives a row one cell
/// per heading.
pub fn draw<T>(
    frame: &mut Frame,
    area: Rect,
    headings: &[Heading],
    rows: &[T],
    cells: impl Fn(&T) -> Vec<String>,
    selected: Option<usize>,
) {
    let room = usize::from(area.height).saturating_sub(1);
    let at = selected.unwrap_or(0);
    let first = at.saturating_sub(room / 2).min(rows.len().saturating_sub(room));
    // A terminal would obey control characters in a name.
    let printable = |row: &T| -> Vec<String> {
        cells(row).iter().map(|cell| printable_line(cell).into_owned()).collect()
    };
    let visible: Vec<Vec<String>> =
        rows[first..rows.len().min(first + room)].iter().map(printable).collect();
    let width = usize::from(area.width);
    let kept = fitting(headings, &visible, width);
    let header = line(&kept, |at| &headings[at].name);
    let mut lines = vec![Line::styled(
        format!("{header:<width$}"),
        Style::new().add_modifier(Modifier::REVERSED),
    )];
    for (index, row) in visible.iter().enumerate() {
        let text = line(&kept, |at| &row[at]);
        let style = if selected == Some(first + index) {
            Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
        } else {
            Style::new()
        };
        lines.push(Line::styled(format!("{text:<width$}"), style));
    }
    frame.render_widget(ratatui::text::Text::from(lines), area);
}
