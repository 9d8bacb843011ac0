//! Tables above the flows, which are what the screen is for: a few lines each.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::text::Line;

use super::grid::{self, Column};

const MOST_LINES: usize = 6;

/// The cells, in the order of the columns.
pub(super) type Row = [String; 8];

pub(super) const fn column(
    name: &'static str,
    is_number: bool,
    width: usize,
    rank: u8,
    cell: fn(&Row) -> String,
) -> Column<Row> {
    Column { name, is_number, width, rank, cell }
}

/// For so many rows, where no more than `most` lines can be spared.
pub(super) fn height(rows: usize, most: u16) -> Constraint {
    let most = MOST_LINES.min(usize::from(most)).max(2);
    // A line for the header, and one between this and what follows.
    Constraint::Length(((rows + 1).min(most) + 1) as u16)
}

/// How many rows an area shows.
pub(super) fn room(area: Rect) -> usize {
    usize::from(area.height).saturating_sub(2)
}

/// `rows` are the first of `count`. Where those are more, the last line names the `command` that lists
/// them.
pub(super) fn draw(
    frame: &mut Frame,
    area: Rect,
    columns: &[Column<Row>],
    rows: &[Row],
    count: usize,
    command: &str,
) {
    let room = room(area);
    let area = Rect { height: area.height.saturating_sub(1), ..area };
    grid::draw(frame, area, columns, rows, None);
    if count <= room || room == 0 {
        return;
    }
    let last = Rect { y: area.bottom() - 1, height: 1, ..area };
    let more = format!("... and {} more: `{command}` lists them", count - (room - 1));
    let width = usize::from(area.width);
    frame.render_widget(Line::from(format!("{more:<width$}")), last);
}
