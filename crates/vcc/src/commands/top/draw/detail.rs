//! The selected flow: its limit, its figures, and their history.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::Sparkline;
use vcc_command::output::printable_line;
use vcc_view::{FLOW_COLUMNS, FlowView, cell, limit, units};

use super::Section;
use crate::commands::top::history::Point;
use crate::commands::top::model::Model;

pub(super) const SECTION: Section = Section { height, draw };

const LINES: u16 = 8;
/// A lower terminal shows the flows alone.
const LEAST_HEIGHT: u16 = 18;
const LABEL_WIDTH: u16 = 22;

fn height(model: &Model, of: u16) -> Constraint {
    let is_shown = model.has_detail && of >= LEAST_HEIGHT && model.selected().is_some();
    Constraint::Length(if is_shown { LINES } else { 0 })
}

fn draw(model: &Model, frame: &mut Frame, area: Rect) {
    let Some((flow, history)) = model.selected() else { return };
    let width = usize::from(area.width);
    let id = flow.id();
    let vlan = id.vlan.map_or(String::new(), |vlan| format!(", VLAN {vlan}"));
    let (guest, peer, port) = (id.guest, id.peer, &flow.port);
    let (underlay, stage) = (flow.underlay(), flow.state.stage().name());
    let title = format!("{guest} - {peer} at {port}{vlan}, {underlay}, {stage}");
    let title = printable_line(&title);
    let lines = [
        Line::styled(format!("{title:<width$}"), Style::new().reversed()),
        Line::from(vec!["limited by ".into(), limit::text(flow.limit).bold()]),
        Line::from(sizes(flow)),
        Line::from(counts(flow)),
    ];
    for (row, line) in (area.y..area.bottom()).zip(lines) {
        frame.render_widget(line, Rect { y: row, height: 1, ..area });
    }
    let room = usize::from(area.width.saturating_sub(LABEL_WIDTH));
    let points: Vec<Point> = history.last(room).collect();
    let rates = flow.rates.unwrap_or_default();
    let traces: [(String, Vec<u64>); 3] = [
        (
            format!("rate   {}", units::bit_rate(rates.goodput_bits_per_s)),
            points.iter().map(|point| point.goodput_bits_per_s as u64).collect(),
        ),
        (
            format!("window {}", cell(FLOW_COLUMNS, flow, "window_shown_bytes")),
            points.iter().map(|point| point.window_shown_bytes.into()).collect(),
        ),
        (
            // Scaled, so that less than one mark per second is drawn.
            format!("marks  {}", units::per_s(rates.marks_per_s)),
            points.iter().map(|point| (point.marks_per_s * 100.0) as u64).collect(),
        ),
    ];
    for (row, (label, values)) in (area.y + 4..area.bottom()).zip(traces) {
        frame.render_widget(
            Line::from(label),
            Rect { y: row, width: LABEL_WIDTH, height: 1, ..area },
        );
        let place = Rect {
            x: area.x + LABEL_WIDTH.min(area.width),
            y: row,
            width: area.width.saturating_sub(LABEL_WIDTH),
            height: 1,
        };
        frame.render_widget(Sparkline::default().data(values), place);
    }
}

fn sizes(flow: &FlowView) -> String {
    format!(
        "cwnd {} x {}  ssthresh {}  window {} of {}  flight {}",
        cell(FLOW_COLUMNS, flow, "cwnd_segs"),
        cell(FLOW_COLUMNS, flow, "mss_bytes"),
        cell(FLOW_COLUMNS, flow, "ssthresh_segs"),
        cell(FLOW_COLUMNS, flow, "window_shown_bytes"),
        cell(FLOW_COLUMNS, flow, "window_received_bytes"),
        cell(FLOW_COLUMNS, flow, "flight_bytes"),
    )
}

fn counts(flow: &FlowView) -> String {
    let alpha = flow
        .state
        .alpha()
        .map_or(String::new(), |_| format!("  alpha {}", cell(FLOW_COLUMNS, flow, "alpha")));
    format!(
        "srtt {}{alpha}  ECN {}/{}  {} marks  {} reductions  {} retransmissions",
        cell(FLOW_COLUMNS, flow, "srtt_us"),
        cell(FLOW_COLUMNS, flow, "ecn_guest"),
        cell(FLOW_COLUMNS, flow, "ecn_fabric"),
        cell(FLOW_COLUMNS, flow, "marks"),
        cell(FLOW_COLUMNS, flow, "reductions"),
        cell(FLOW_COLUMNS, flow, "retransmissions"),
    )
}
