//! Draws a recording.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Chart, Dataset, GraphType};
use vcc_command::output::printable_line;
use vcc_view::{FLOW_COLUMNS, FlowView, cell, limit, units};

use crate::commands::trace::series::{Series, Value};

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
    let (id, port) = (flow.id(), &flow.port);
    let name = format!("{} - {} at {port}  {}", id.guest, id.peer, flow.underlay());
    let name = printable_line(&name);
    frame.render_widget(Line::from(format!("{name:<width$}").reversed()), title);
    let text = vec![Span::from("limited by "), limit::text(flow.limit).bold()];
    frame.render_widget(Line::from(text), limited);
    frame.render_widget(legend_of(flow), legend);
    plot_windows(view, frame, windows);
    let srtt = curve(view, |point| point.srtt_us);
    let srtt = Curve { points: &srtt, colour: Color::Magenta, is_line: true };
    plot(view, frame, round_trip, &[srtt], Scale { round_up: round_up_us, label: units::duration });
    let paused = if view.is_paused { "  PAUSED" } else { "" };
    let help = format!("q quit  + - zoom  p pause   the last {} s{paused}", view.span_s);
    frame.render_widget(Line::from(help), keys);
}

/// The names of the curves in their colours, with the present values.
fn legend_of(flow: &FlowView) -> Line<'static> {
    let cwnd = flow.state.cwnd_bytes().map_or("-".to_owned(), |bytes| units::bytes(bytes as f64));
    let values = [
        cell(FLOW_COLUMNS, flow, "window_shown_bytes"),
        cwnd,
        cell(FLOW_COLUMNS, flow, "flight_bytes"),
    ];
    let mut spans: Vec<Span> = Vec::new();
    for ((name, colour, _), value) in CURVES.iter().zip(values) {
        spans.push(Span::styled(format!("{name} {value}  "), Style::new().fg(*colour)));
    }
    let srtt = cell(FLOW_COLUMNS, flow, "srtt_us");
    spans.push(Span::styled(format!("srtt {srtt}  "), Style::new().fg(Color::Magenta)));
    let reductions = format!("{} reductions  ", flow.state.reductions);
    spans.push(Span::styled(reductions, Style::new().fg(REDUCTION)));
    spans.push(
        format!("{} marks  {} retransmissions", flow.state.marks, flow.state.retransmissions)
            .into(),
    );
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
    plot(view, frame, area, &curves, Scale { round_up: round_up_bytes, label: units::bytes });
}

#[derive(Clone, Copy)]
struct Scale {
    round_up: fn(f64) -> f64,
    label: fn(f64) -> String,
}

struct Curve<'a> {
    points: &'a [(f64, f64)],
    colour: Color,
    /// Otherwise a triangle at each point.
    is_line: bool,
}

fn plot(view: &View, frame: &mut Frame, area: Rect, curves: &[Curve], scale: Scale) {
    if area.height < 3 || area.width < 20 {
        return;
    }
    let highest = curves.iter().flat_map(|curve| curve.points).map(|point| point.1);
    let top = (scale.round_up)(highest.fold(0.0, f64::max));
    let labels = [0.0, top / 2.0, top].map(|value| format!("{:>8}", (scale.label)(value)));
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

/// The curve within the span; its last value extends to the present.
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

/// The top of an axis: a round number, so that it does not move with each ACK.
fn round_up(value: f64, base: f64, steps: &[f64]) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = base.powf(value.log(base).floor());
    steps.iter().map(|step| step * power).find(|top| *top >= value).unwrap_or(base * power)
}

fn round_up_bytes(bytes: f64) -> f64 {
    round_up(bytes, 2.0, &[1.0, 1.5, 2.0])
}

fn round_up_us(us: f64) -> f64 {
    round_up(us, 10.0, &[1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0])
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use vcc_view::testing::flow;

    use super::*;
    use crate::commands::trace::series::tests::event;

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
        for legend in [
            "192.0.2.1:40000 - 192.0.2.2:5001 at veth3  dctcp",
            "limited by the underlay's window, 10 segments, 14.1 KiB",
            "window 14.1 KiB  cwnd 14.1 KiB  flight 14.1 KiB  srtt 1.25 ms",
            "-10 s",
            "16.0 KiB",
            "1.50 ms",
            "now",
        ] {
            assert!(text.contains(legend), "{legend}:\n{text}");
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
    fn the_last_value_extends_to_the_present() {
        let mut series = Series::thinned(0, 0.0);
        series.note(&event(1_000_000, 0, 0));
        let flow = flow("192.0.2.1:40000", "192.0.2.2:5001");
        let view =
            View { flow: &flow, series: &series, now_s: 30.0, span_s: 10.0, is_paused: false };
        assert_eq!(curve(&view, |point| point.cwnd_bytes), [(-10.0, 14_400.0), (0.0, 14_400.0)]);
    }
}
