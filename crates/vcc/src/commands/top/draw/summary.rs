//! Short tables above the flows.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::text::Line;
use vcc_view::Column;

use super::grid;

/// The height for so many rows, of `most` lines at most.
pub(super) fn height(rows: usize, most: u16) -> Constraint {
    let most = usize::from(most).max(2);
    // A line for the header, and one between this and what follows.
    Constraint::Length(((rows + 1).min(most) + 1) as u16)
}

/// How many rows an area shows.
pub(super) fn room(area: Rect) -> usize {
    usize::from(area.height).saturating_sub(2)
}

/// `rows` are the first of `count`. Where those are more, the last line names the `command` that
/// lists them.
pub(super) fn draw<T>(
    frame: &mut Frame,
    area: Rect,
    columns: &'static [Column<T>],
    rows: &[&T],
    count: usize,
    command: &str,
) {
    let room = room(area);
    let area = Rect { height: area.height.saturating_sub(1), ..area };
    grid::draw(frame, area, &grid::shown(columns), rows, None);
    if count <= room || room == 0 {
        return;
    }
    let last = Rect { y: area.bottom() - 1, height: 1, ..area };
    let more = format!("... and {} more: `{command}` lists them", count - (room - 1));
    let width = usize::from(area.width);
    frame.render_widget(Line::from(format!("{more:<width$}")), last);
}
