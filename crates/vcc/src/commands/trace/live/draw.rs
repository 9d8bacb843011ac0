//! The picture as a function of what was recorded.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Chart, Dataset, GraphType};

use crate::commands::trace::series::{Series, Value};
use crate::output::printable_line;
use crate::seen::FlowView;
use crate::units;

pub struct View<'a> {
    pub flow: &'a FlowView,
    pub series: &'a Series,
    /// At the right edge.
    pub now_s: f64,
    pub span_s: f64,
    pub is_paused: bool,
}

type Points = Vec<(f64, f64)>;

const CURVES: [(&str, Color, Value); 3] = [
    ("window", Color::Green, |point| point.window_bytes),
    ("cwnd", Color::Yellow, |point| point.cwnd_bytes),
    ("flight", Color::Cyan, |point| Some(point.flight_bytes)),
];
const REDUCTION: Color = Color::Red;

pub fn draw(view: &View, frame: &mut Frame) {
    let [title, limited, legend, windows, round_trip, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Fill(2),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let flow = view.flow;
    let width = usize::from(title.width);
    let name = format!("{} - {} at {}  {}", flow.guest, flow.peer, flow.port, flow.underlay);
    let name = printable_line(&name);
    frame.render_widget(Line::from(format!("{name:<width$}").reversed()), title);
    let text = vec![Span::from("limited by "), flow.limited_by_text.clone().bold()];
    frame.render_widget(Line::from(text), limited);
    frame.render_widget(told(flow), legend);
    plot_windows(view, frame, windows);
    let srtt = curve(view, |point| point.srtt_us);
    let srtt = Curve { points: &srtt, colour: Color::Magenta, is_line: true };
    plot(view, frame, round_trip, &[srtt], units::duration);
    let paused = if view.is_paused { "  PAUSED" } else { "" };
    let help = format!("q quit  + - zoom  p pause   the last {} s{paused}", view.span_s);
    frame.render_widget(Line::from(help), keys);
}

/// The curves' names in their colours, with their present values.
fn told(flow: &FlowView) -> Line<'static> {
    let bytes = |bytes: Option<f64>| bytes.map_or("-".to_owned(), units::bytes);
    let cwnd = flow.cwnd_segs.map(|segs| f64::from(segs) * f64::from(flow.mss_bytes));
    let values = [
        bytes(flow.window_shown_bytes.map(f64::from)),
        bytes(cwnd),
        bytes(Some(flow.flight_bytes.into())),
    ];
    let mut spans: Vec<Span> = Vec::new();
    for ((name, colour, _), value) in CURVES.iter().zip(values) {
        spans.push(Span::styled(format!("{name} {value}  "), Style::new().fg(*colour)));
    }
    let srtt = flow.srtt_us.map_or("-".to_owned(), |us| units::duration(us.into()));
    spans.push(Span::styled(format!("srtt {srtt}  "), Style::new().fg(Color::Magenta)));
    let reductions = format!("{} reductions  ", flow.reductions);
    spans.push(Span::styled(reductions, Style::new().fg(REDUCTION)));
    spans.push(format!("{} marks  {} sent again", flow.marks, flow.retransmissions).into());
    Line::from(spans)
}

fn plot_windows(view: &View, frame: &mut Frame, area: Rect) {
    let drawn: Vec<(Points, Color)> =
        CURVES.iter().map(|(_, colour, of)| (curve(view, *of), *colour)).collect();
    let reductions: Points = view
        .series
        .reductions_s
        .iter()
        .filter(|at_s| **at_s >= view.now_s - view.span_s && **at_s <= view.now_s)
        .map(|at_s| (at_s - view.now_s, 0.0))
        .collect();
    let mut curves: Vec<Curve> = drawn
        .iter()
        .map(|(points, colour)| Curve { points, colour: *colour, is_line: true })
        .collect();
    curves.push(Curve { points: &reductions, colour: REDUCTION, is_line: false });
    plot(view, frame, area, &curves, units::bytes);
}

struct Curve<'a> {
    points: &'a [(f64, f64)],
    colour: Color,
    /// Else a sign at each of them.
    is_line: bool,
}

fn plot(view: &View, frame: &mut Frame, area: Rect, curves: &[Curve], label: fn(f64) -> String) {
    if area.height < 3 || area.width < 20 {
        return;
    }
    let highest = curves.iter().flat_map(|curve| curve.points).map(|point| point.1);
    let top = round_up(highest.fold(0.0, f64::max));
    let labels = [0.0, top / 2.0, top].map(|value| format!("{:>8}", label(value)));
    let datasets = curves
        .iter()
        .map(|curve| {
            let dataset = Dataset::default().data(curve.points).style(curve.colour);
            if curve.is_line {
                dataset.marker(Marker::Braille).graph_type(GraphType::Line)
            } else {
                dataset.marker(Marker::Custom('▲')).graph_type(GraphType::Scatter)
            }
        })
        .collect();
    let span_s = view.span_s;
    let times = [format!("-{span_s} s"), format!("-{} s", span_s / 2.0), "now".into()];
    let chart = Chart::new(datasets)
        .x_axis(Axis::default().bounds([-span_s, 0.0]).labels(times).style(Style::new().dim()))
        .y_axis(Axis::default().bounds([0.0, top]).labels(labels).style(Style::new().dim()));
    frame.render_widget(chart, area);
}

/// The curve within the span; it goes on to the present as it last stood.
fn curve(view: &View, of: Value) -> Points {
    let from_s = view.now_s - view.span_s;
    let points = &view.series.points;
    let first = points.partition_point(|point| point.time_s < from_s);
    let end = points.partition_point(|point| point.time_s <= view.now_s);
    let mut drawn: Points = points[first..end.max(first)]
        .iter()
        .filter_map(|point| Some((point.time_s - view.now_s, of(point)?)))
        .collect();
    let before = points[..first].last().and_then(of);
    if let Some(value) = before {
        drawn.insert(0, (-view.span_s, value));
    }
    if let Some((_, value)) = drawn.last().copied() {
        drawn.push((0.0, value));
    }
    drawn
}

/// So that the axis does not move with each ACK.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10.0_f64.powf(value.log10().floor());
    let steps = [1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0];
    steps.into_iter().find(|step| step * power >= value).unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::commands::trace::series::tests::event;
    use crate::seen::testing::flow;

    fn screen(series: &Series, now_s: f64, (width, height): (u16, u16)) -> String {
        let flow = flow("192.0.2.1:40000", "192.0.2.2:5001");
        let view = View { flow: &flow, series, now_s, span_s: 10.0, is_paused: false };
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        terminal.draw(|frame| draw(&view, frame)).expect("drawn");
        let cells = terminal.backend().buffer().content.chunks(usize::from(width));
        let line = |row: &[ratatui::buffer::Cell]| -> String {
            row.iter().map(|cell| cell.symbol()).collect()
        };
        cells.map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn curves_axes_and_reductions() {
        let mut series = Series::thinned(0, 0.0);
        for step in 0..200_u32 {
            series.note(&event(u64::from(step) * 50_000, step, step / 60));
        }
        let text = screen(&series, 10.0, (80, 24));
        for told in [
            "192.0.2.1:40000 - 192.0.2.2:5001 at veth3  dctcp",
            "limited by the underlay's window, 10 segments, 14.4 kB",
            "window 14.4 kB  cwnd 14.4 kB  flight 14.4 kB  srtt 1.25 ms",
            "-10 s",
            "15.0 kB",
            "1.50 ms",
            "now",
        ] {
            assert!(text.contains(told), "{told}:\n{text}");
        }
        assert_eq!(text.matches('▲').count(), 3, "{text}");
    }

    #[test]
    fn any_size_and_nothing_recorded() {
        for size in [(1, 1), (19, 5), (80, 24), (300, 90)] {
            screen(&Series::default(), 0.0, size);
        }
    }

    #[test]
    fn what_was_last_known_goes_on_to_the_present() {
        let mut series = Series::thinned(0, 0.0);
        series.note(&event(1_000_000, 0, 0));
        let flow = flow("192.0.2.1:40000", "192.0.2.2:5001");
        let view =
            View { flow: &flow, series: &series, now_s: 30.0, span_s: 10.0, is_paused: false };
        assert_eq!(curve(&view, |point| point.cwnd_bytes), [(-10.0, 14_400.0), (0.0, 14_400.0)]);
    }
}
