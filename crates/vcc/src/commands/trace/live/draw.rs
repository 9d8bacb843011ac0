//! Draws a recording.

use std::borrow::Cow;

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
type Piece<'a> = Cow<'a, [(f64, f64)]>;

/// Often several are equal: each is drawn over those before it, which stay visible between its dashes.
const CURVES: [(&str, Color, Pen, Value); 4] = [
    ("flight", Color::Cyan, Pen::Line, |point| Some(point.flight_bytes)),
    ("window", Color::Green, Pen::Dashes(|part| part % 4 != 3), |point| point.window_bytes),
    ("cwnd", Color::Yellow, Pen::Dashes(|part| part % 4 == 1), |point| point.cwnd_bytes),
    ("ssthresh", Color::Blue, Pen::Dashes(|part| part % 4 == 2), |point| point.ssthresh_bytes),
];
const REDUCTION: Color = Color::Red;
/// Parts of the width, of which a dashed curve is drawn in some.
const PARTS: u32 = 40;

#[derive(Clone, Copy)]
enum Pen {
    Line,
    /// Only in these parts.
    Dashes(fn(u32) -> bool),
    /// A triangle at each point.
    Triangles,
}

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
    let srtt = Curve { points: &srtt, colour: Color::Magenta, pen: Pen::Line };
    plot(view, frame, round_trip, &[srtt], Scale { round_up: round_up_us, label: units::duration });
    let paused = if view.is_paused { "  PAUSED" } else { "" };
    let help = format!("q quit  + - zoom  p pause   the last {} s{paused}", view.span_s);
    frame.render_widget(Line::from(help), keys);
}

/// The names of the curves in their colours, with the present values.
fn legend_of(flow: &FlowView) -> Line<'static> {
    let cwnd = flow.state.cwnd_bytes().map_or("-".to_owned(), |bytes| units::bytes(bytes as f64));
    let mss_bytes = u64::from(flow.state.mss_bytes);
    let ssthresh = flow.state.ssthresh_segs().map(|segs| u64::from(segs) * mss_bytes);
    let values = [
        cell(FLOW_COLUMNS, flow, "flight_bytes"),
        cell(FLOW_COLUMNS, flow, "window_shown_bytes"),
        cwnd,
        ssthresh.map_or("-".to_owned(), |bytes| units::bytes(bytes as f64)),
    ];
    let mut spans: Vec<Span> = Vec::new();
    for ((name, colour, ..), value) in CURVES.iter().zip(values) {
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
    let drawn: Vec<(Points, Color, Pen)> =
        CURVES.iter().map(|(_, colour, pen, of)| (curve(view, *of), *colour, *pen)).collect();
    let reductions: Points = view
        .series
        .reductions_s
        .iter()
        .filter(|at_s| **at_s >= view.now_s - view.span_s && **at_s <= view.now_s)
        .map(|at_s| (at_s - view.now_s, 0.0))
        .collect();
    let mut curves: Vec<Curve> = drawn
        .iter()
        .map(|(points, colour, pen)| Curve { points, colour: *colour, pen: *pen })
        .collect();
    curves.push(Curve { points: &reductions, colour: REDUCTION, pen: Pen::Triangles });
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
    pen: Pen,
}

fn plot(view: &View, frame: &mut Frame, area: Rect, curves: &[Curve], scale: Scale) {
    if area.height < 3 || area.width < 20 {
        return;
    }
    let highest = curves.iter().flat_map(|curve| curve.points).map(|point| point.1);
    let top = (scale.round_up)(highest.fold(0.0, f64::max));
    let labels = [0.0, top / 2.0, top].map(|value| format!("{:>8}", (scale.label)(value)));
    let span_s = view.span_s;
    let pieces: Vec<(Piece, &Curve)> = curves
        .iter()
        .flat_map(|curve| pieces(curve, span_s).into_iter().map(move |piece| (piece, curve)))
        .collect();
    let datasets = pieces
        .iter()
        .map(|(points, curve)| {
            let dataset = Dataset::default().data(points).style(curve.colour);
            match curve.pen {
                Pen::Triangles => {
                    dataset.marker(Marker::Custom('▲')).graph_type(GraphType::Scatter)
                }
                Pen::Line | Pen::Dashes(_) => {
                    dataset.marker(Marker::Braille).graph_type(GraphType::Line)
                }
            }
        })
        .collect();
    let times = [format!("-{span_s} s"), format!("-{} s", span_s / 2.0), "now".into()];
    let chart = Chart::new(datasets)
        .x_axis(Axis::default().bounds([-span_s, 0.0]).labels(times).style(Style::new().dim()))
        .y_axis(Axis::default().bounds([0.0, top]).labels(labels).style(Style::new().dim()));
    frame.render_widget(chart, area);
}

/// What is drawn of a curve: all of it, or its dashes.
fn pieces<'a>(curve: &Curve<'a>, span_s: f64) -> Vec<Piece<'a>> {
    let Pen::Dashes(is_drawn) = curve.pen else { return vec![curve.points.into()] };
    let part_s = span_s / f64::from(PARTS);
    let dash = |part: u32| {
        let from_s = f64::from(part) * part_s - span_s;
        let to_s = from_s + part_s;
        let within = curve.points.iter().copied().filter(|(at, _)| from_s < *at && *at < to_s);
        let ends = |at_s| value_at(curve.points, at_s).map(|value| (at_s, value)).into_iter();
        ends(from_s).chain(within).chain(ends(to_s)).collect::<Points>()
    };
    let parts = (0..PARTS).filter(|part| is_drawn(*part));
    parts.map(dash).filter(|dash| !dash.is_empty()).map(Cow::Owned).collect()
}

/// On the line between two points.
fn value_at(points: &[(f64, f64)], at_s: f64) -> Option<f64> {
    let next = points.partition_point(|point| point.0 < at_s);
    let (to_s, to) = *points.get(next)?;
    let (from_s, from) = match next.checked_sub(1) {
        Some(before) => points[before],
        None => return (to_s == at_s).then_some(to),
    };
    Some(from + (to - from) * (at_s - from_s) / (to_s - from_s))
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
            "flight 14.1 KiB  window 14.1 KiB  cwnd 14.1 KiB  ssthresh 11.2 KiB  srtt 1.25 ms",
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
    fn curves_of_one_value_are_all_visible() {
        let mut series = Series::thinned(0, 0.0);
        (0..200).for_each(|step| series.note(&event(u64::from(step) * 50_000, step, 0)));
        let flow = flow("192.0.2.1:40000", "192.0.2.2:5001");
        let view =
            View { flow: &flow, series: &series, now_s: 10.0, span_s: 10.0, is_paused: false };
        let mut terminal = Terminal::new(TestBackend::new(100, 30)).expect("a terminal");
        terminal.draw(|frame| plot_windows(&view, frame, frame.area())).expect("drawn");
        let cells = &terminal.backend().buffer().content;
        for (name, colour, ..) in CURVES {
            let drawn = cells.iter().filter(|cell| cell.fg == colour).count();
            assert!(drawn > 5, "{name}: {drawn}");
        }
    }

    #[test]
    fn a_dash_ends_between_two_points() {
        let points = [(-8.0, 0.0), (0.0, 80.0)];
        let pen = Pen::Dashes(|part| part == 20);
        let drawn = pieces(&Curve { points: &points, colour: Color::Blue, pen }, 10.0);
        assert_eq!(drawn, [vec![(-5.0, 30.0), (-4.75, 32.5)]]);
        assert_eq!(pieces(&Curve { points: &[], colour: Color::Blue, pen }, 10.0).len(), 0);
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
