//! A recording as a picture: sequence numbers, windows, marks and reductions, and the round-trip time, over
//! one axis of time.

use vcc_plot::lines::Width;
use vcc_plot::{
    Area, Axis, Canvas, Ink, Line, LinePanel, Scale, furnish_below, index_of, legend, lines,
};

use super::sequence::{Sequence, Spans};
use super::series::{Series, Value};

const WIDTH: f64 = 940.0;
const LEFT: f64 = 78.0;
const PLOT_WIDTH: f64 = WIDTH - LEFT - 24.0;
const TOP: f64 = 76.0;
const SEQUENCE_HEIGHT: f64 = 300.0;
const WINDOWS_HEIGHT: f64 = 300.0;
/// Bytes in one.
const KIB: f64 = 1024.0;
const TICK_HEIGHT: f64 = 18.0;
const SRTT_HEIGHT: f64 = 130.0;

/// The curves of the panel of windows, by name.
const CURVES: [(&str, Value); 4] = [
    ("window shown", |point| point.window_bytes),
    ("flight", |point| Some(point.flight_bytes)),
    ("cwnd", |point| point.cwnd_bytes),
    ("ssthresh", |point| point.ssthresh_bytes),
];
const SRTT: &str = "srtt";
/// What the peer allows beyond it is not drawn.
const HEADROOM: f64 = 1.1;
/// The marks of the panel of sequence numbers.
const SENT: &str = "sent";
const REPEATED: &str = "sent again";
const ACKED: &str = "acknowledged";
const ALLOWED: &str = "peer's window";

/// `title` names the connection; `limited` says what limited it last. `sequence` has a panel of its own, if
/// it is known.
pub fn svg(title: &str, limited: &str, series: &Series, sequence: Option<&Sequence>) -> String {
    let windows_top = TOP + sequence.map_or(0.0, |_| SEQUENCE_HEIGHT + 40.0);
    let ticks_top = windows_top + WINDOWS_HEIGHT + 12.0;
    let srtt_top = ticks_top + 2.0 * TICK_HEIGHT + 40.0;
    let height = srtt_top + SRTT_HEIGHT + 64.0;
    let mut canvas = Canvas::file(WIDTH, height);
    canvas.bold((16.0, 28.0), 17.0, title);
    // With sequence numbers, a window is the distance of two lines.
    let curves = if sequence.is_some() { &CURVES[1..] } else { &CURVES };
    let lines: Vec<Line> = curves
        .iter()
        .map(|(name, of)| Line { name: (*name).into(), points: in_kib(series.curve(*of)) })
        .collect();
    let of_sequence = sequence.map_or(&[][..], |_| &[SENT, REPEATED, ACKED, ALLOWED]);
    let of_windows = lines.iter().map(|line| line.name.clone());
    let mut names: Vec<String> = of_sequence.iter().map(|name| (*name).into()).collect();
    names.extend(of_windows.chain([SRTT.into()]));
    legend(&mut canvas, 16.0, 44.0, &names);

    let times = series.points.iter().map(|point| point.time_s);
    let sent = sequence.map(|sequence| sequence.sent.iter().map(|span| span.time_s));
    let x = Axis::spanning("time (s)", Scale::Linear, times.chain(sent.into_iter().flatten()));
    if let Some(sequence) = sequence {
        let area = Area { left: LEFT, top: TOP, width: PLOT_WIDTH, height: SEQUENCE_HEIGHT };
        draw_sequence(&mut canvas, area, &x, sequence, &names);
    }
    let windows = LinePanel { title: String::new(), lines };
    let area = Area { left: LEFT, top: windows_top, width: PLOT_WIDTH, height: WINDOWS_HEIGHT };
    let y = lines::axis("KiB", std::slice::from_ref(&windows));
    // The window often equals the cwnd, and has to be visible behind it.
    let first = if sequence.is_some() { Width::Fine } else { Width::Band };
    lines::draw_over(&mut canvas, area, (&x, &y), &windows, &names, first);

    ticks(&mut canvas, ticks_top, "marks", &series.marks_s, &x);
    ticks(&mut canvas, ticks_top + TICK_HEIGHT, "reductions", &series.reductions_s, &x);

    let points = series.curve(|point| point.srtt_us);
    let points = points.into_iter().map(|(time_s, srtt_us)| (time_s, srtt_us / 1e3)).collect();
    let round_trip =
        LinePanel { title: String::new(), lines: vec![Line { name: SRTT.into(), points }] };
    let area = Area { left: LEFT, top: srtt_top, width: PLOT_WIDTH, height: SRTT_HEIGHT };
    let y = lines::axis("srtt (ms)", std::slice::from_ref(&round_trip));
    lines::draw_over(&mut canvas, area, (&x, &y), &round_trip, &names, Width::Fine);
    furnish_below(&mut canvas, area, &x);
    canvas.text(
        (16.0, height - 12.0),
        11.0,
        "start",
        Ink::Label,
        &format!("Last limited by {limited}"),
    );
    canvas.finish()
}

/// Segments as bars from their first to their last byte, between what is acknowledged and what the peer
/// allows (Jacobson's time-sequence diagram; Shepard's `xplot`).
fn draw_sequence(canvas: &mut Canvas, area: Area, x: &Axis, sequence: &Sequence, names: &[String]) {
    let tops = [&sequence.sent, &sequence.acked].map(Spans::iter).into_iter().flatten();
    let top = HEADROOM * tops.map(|span| span.to_bytes / KIB).fold(0.0, f64::max);
    let y = Axis::from_zero("sequence (KiB)", [top].into_iter());
    let line = |name: &str, spans: &Spans| {
        let points = in_kib(spans.line()).into_iter().filter(|(_, at)| *at <= top).collect();
        Line { name: name.into(), points }
    };
    let lines = vec![line(ACKED, &sequence.acked), line(ALLOWED, &sequence.allowed)];
    let panel = LinePanel { title: String::new(), lines };
    lines::draw_over(canvas, area, (x, &y), &panel, names, Width::Fine);
    for (name, spans) in [(SENT, &sequence.sent), (REPEATED, &sequence.repeated)] {
        bars(canvas, area, (x, &y), spans, Ink::Series(index_of(names, name)));
    }
}

/// A bar for each pixel, at most.
fn bars(canvas: &mut Canvas, area: Area, (x, y): (&Axis, &Axis), spans: &Spans, ink: Ink) {
    let height = |bytes: f64| area.top + area.height * (1.0 - y.position(bytes / KIB));
    let mut drawn: Option<[f64; 3]> = None;
    let mut draw = |bar: [f64; 3]| {
        let [left, from, to] = bar;
        // A short segment has to be visible.
        let points = [(left, from), (left, to.min(from - 1.0))];
        canvas.path(points.into_iter(), ink, 1.4);
    };
    for span in spans.iter() {
        let left = area.left + area.width * x.position(span.time_s);
        let (from, to) = (height(span.from_bytes), height(span.to_bytes));
        drawn = match drawn {
            Some([at, bottom, top])
                if left - at < 0.5 && (bottom.min(from) - top.max(to)) > -1.0 =>
            {
                Some([at, bottom.max(from), top.min(to)])
            }
            Some(bar) => {
                draw(bar);
                Some([left, from, to])
            }
            None => Some([left, from, to]),
        };
    }
    if let Some(bar) = drawn {
        draw(bar);
    }
}

fn in_kib(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    points.into_iter().map(|(time_s, bytes)| (time_s, bytes / KIB)).collect()
}

/// One line each, but at most one per pixel.
fn ticks(canvas: &mut Canvas, top: f64, name: &str, at_s: &[f64], x: &Axis) {
    let bottom = top + TICK_HEIGHT - 6.0;
    canvas.text((LEFT - 6.0, bottom), 11.0, "end", Ink::Label, name);
    let mut last = f64::NEG_INFINITY;
    for time_s in at_s {
        let left = LEFT + PLOT_WIDTH * x.position(*time_s);
        if left - last >= 1.0 {
            canvas.line((left, top), (left, bottom), Ink::Text);
            last = left;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::series::tests::event;
    use super::*;

    #[test]
    fn all_curves_and_ticks_are_there() {
        let mut series = Series::complete();
        for step in 0..100_u32 {
            series.note(&event(u64::from(step) * 10_000, step / 10, step / 50));
        }
        let title = "192.0.2.1:40000 - 192.0.2.2:5001";
        let svg = svg(title, "the receiver <64 kB>", &series, None);
        assert_eq!(svg.matches("<polyline").count(), 5);
        for name in
            ["window shown", "flight", "cwnd", "ssthresh", "srtt (ms)", "marks", "reductions"]
        {
            assert!(svg.contains(&format!(">{name}</text>")), "{name}");
        }
        assert!(svg.contains("limited by the receiver &lt;64 kB&gt;"), "{svg}");
        let ticks_top = TOP + WINDOWS_HEIGHT + 12.0;
        let tick_tops = [ticks_top, ticks_top + TICK_HEIGHT]
            .map(|top| svg.matches(&format!("y1=\"{top:.1}\"")).count());
        assert_eq!(tick_tops, [9, 1]);
    }

    #[test]
    fn segments_are_bars_between_two_lines() {
        let mut sequence = Sequence::default();
        for step in 0..10_u32 {
            let time_s = f64::from(step);
            sequence.note_sent(time_s, step * 10_000, 10_000, false);
            sequence.note_acked(time_s + 0.5, step * 10_000 + 10_000, Some(60_000));
        }
        sequence.note_sent(9.7, 20_000, 10_000, true);
        let without = svg("a", "b", &Series::default(), Some(&Sequence::default()));
        let svg = svg("a", "b", &Series::default(), Some(&sequence));
        let lines = |svg: &str| svg.matches("<polyline").count();
        assert_eq!(lines(&svg) - lines(&without), 11, "{svg}");
        for name in [SENT, REPEATED, ACKED, ALLOWED, "sequence (KiB)"] {
            assert!(svg.contains(&format!(">{name}</text>")), "{name}: {svg}");
        }
    }

    #[test]
    fn nothing_recorded_makes_a_picture_all_the_same() {
        assert!(
            svg("nothing", "-", &Series::default(), Some(&Sequence::default()))
                .ends_with("</svg>\n")
        );
    }
}
