//! The selected flow: what limits it, its figures, and how it came to them.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::Sparkline;

use super::Section;
use crate::commands::top::history::Point;
use crate::commands::top::model::Model;
use crate::output::printable_line;
use crate::seen::FlowView;
use crate::units;

pub(super) const SECTION: Section = Section { height, draw };

const LINES: u16 = 8;
/// Of a terminal so low that it would leave nothing to the flows.
const LEAST_HEIGHT: u16 = 18;
const LABEL_WIDTH: u16 = 22;

fn height(model: &Model, of: u16) -> Constraint {
    let is_shown = model.has_detail && of >= LEAST_HEIGHT && model.selected().is_some();
    Constraint::Length(if is_shown { LINES } else { 0 })
}

fn draw(model: &Model, frame: &mut Frame, area: Rect) {
    let Some((flow, history)) = model.selected() else { return };
    let width = usize::from(area.width);
    let vlan = flow.vlan.map_or(String::new(), |vlan| format!(", VLAN {vlan}"));
    let (guest, peer, port) = (&flow.guest, &flow.peer, &flow.port);
    let title = format!("{guest} - {peer} at {port}{vlan}, {}, {}", flow.underlay, flow.stage);
    let title = printable_line(&title);
    let lines = [
        Line::styled(format!("{title:<width$}"), Style::new().reversed()),
        Line::from(vec!["limited by ".into(), flow.limited_by_text.clone().bold()]),
        Line::from(sizes(flow)),
        Line::from(counts(flow)),
    ];
    for (row, line) in (area.y..area.bottom()).zip(lines) {
        frame.render_widget(line, Rect { y: row, height: 1, ..area });
    }
    let room = usize::from(area.width.saturating_sub(LABEL_WIDTH));
    let points: Vec<Point> = history.last(room).collect();
    let rate = flow.goodput_bits_per_s.unwrap_or_default();
    let window = flow.window_shown_bytes.unwrap_or_default();
    let marks = flow.marks_per_s.unwrap_or_default();
    let traces: [(String, Vec<u64>); 3] = [
        (
            format!("rate   {}", units::bit_rate(rate)),
            points.iter().map(|point| point.goodput_bits_per_s as u64).collect(),
        ),
        (
            format!("window {}", units::bytes(window.into())),
            points.iter().map(|point| point.window_shown_bytes.into()).collect(),
        ),
        (
            // Few of them shall be seen as well.
            format!("marks  {}", units::per_s(marks)),
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
    let segs = |segs: Option<u32>| segs.map_or("-".to_owned(), |segs| segs.to_string());
    let bytes = |bytes: Option<f64>| bytes.map_or("-".to_owned(), units::bytes);
    format!(
        "cwnd {} x {} B  ssthresh {}  window {} of {}  flight {}",
        segs(flow.cwnd_segs),
        flow.mss_bytes,
        segs(flow.ssthresh_segs),
        bytes(flow.window_shown_bytes.map(f64::from)),
        bytes(flow.window_received_bytes.map(|bytes| bytes as f64)),
        units::bytes(flow.flight_bytes.into()),
    )
}

fn counts(flow: &FlowView) -> String {
    let alpha = flow.alpha.map_or(String::new(), |alpha| format!("  alpha {alpha:.3}"));
    format!(
        "srtt {}{alpha}  ECN {}/{}  {} marks  {} reductions  {} sent again",
        flow.srtt_us.map_or("-".to_owned(), |us| units::duration(us.into())),
        flow.ecn_guest,
        flow.ecn_fabric,
        flow.marks,
        flow.reductions,
        flow.retransmissions,
    )
}
