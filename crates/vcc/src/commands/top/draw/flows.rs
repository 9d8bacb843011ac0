//! The flows.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::text::Line;

use super::Section;
use super::grid::{self, Column};
use crate::commands::top::model::Model;
use crate::seen::FlowView;
use crate::units;

pub(super) const SECTION: Section = Section { height: |_, _| Constraint::Min(4), draw };

const fn column(
    name: &'static str,
    is_number: bool,
    width: usize,
    rank: u8,
    cell: fn(&FlowView) -> String,
) -> Column<FlowView> {
    Column { name, is_number, width, rank, cell }
}

const COLUMNS: &[Column<FlowView>] = &[
    column("PORT", false, 0, 10, |flow| flow.port.clone()),
    column("GUEST", false, 0, 0, |flow| flow.guest.clone()),
    column("PEER", false, 0, 1, |flow| flow.peer.clone()),
    column("UNDERLAY", false, 0, 13, |flow| flow.underlay.clone()),
    column("STAGE", false, 11, 14, |flow| flow.stage.into()),
    column("RATE", true, 11, 2, |flow| told(flow.goodput_bits_per_s, units::bit_rate)),
    column("CWND", true, 4, 5, |flow| told(flow.cwnd_segs, |segs| segs.to_string())),
    column("WINDOW", true, 7, 3, |flow| {
        told(flow.window_shown_bytes, |bytes| units::bytes(bytes.into()))
    }),
    column("FLIGHT", true, 7, 11, |flow| units::bytes(flow.flight_bytes.into())),
    column("SRTT", true, 7, 6, |flow| told(flow.srtt_us, |us| units::duration(us.into()))),
    column("ALPHA", true, 5, 12, |flow| told(flow.alpha, |alpha| format!("{alpha:.3}"))),
    column("MARKS", true, 6, 7, |flow| told(flow.marks_per_s, units::per_s)),
    column("REDUC", true, 6, 9, |flow| told(flow.reductions_per_s, units::per_s)),
    column("RETR", true, 6, 8, |flow| told(flow.retransmissions_per_s, units::per_s)),
    column("LIMITED-BY", false, 10, 4, |flow| flow.limited_by.into()),
];

fn told<T>(value: Option<T>, in_words: impl Fn(T) -> String) -> String {
    value.map_or("-".to_owned(), in_words)
}

fn draw(model: &Model, frame: &mut Frame, area: Rect) {
    grid::draw(frame, area, COLUMNS, &model.flows, model.selected_index());
    if model.flows.is_empty() {
        let below = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
        let why = match (model.ports.is_empty(), model.flow_count) {
            (true, _) => "vcc is attached nowhere: `vcc attach DEV`",
            (_, 0) => "no connections: those that begin from now on will be shown",
            _ => "no connection is what you look for: Esc shows all",
        };
        frame.render_widget(Line::from(why), below);
    }
}
