//! A recording as a picture: windows, below them marks and reductions, below these the round-trip time.

use vcc_plot::lines::Width;
use vcc_plot::{Area, Axis, Canvas, Ink, Line, LinePanel, Scale, furnish_below, legend, lines};

use super::series::{Series, Value};

const WIDTH: f64 = 940.0;
const LEFT: f64 = 78.0;
const PLOT_WIDTH: f64 = WIDTH - LEFT - 24.0;
const WINDOWS_TOP: f64 = 96.0;
const WINDOWS_HEIGHT: f64 = 300.0;
const TICKS_TOP: f64 = WINDOWS_TOP + WINDOWS_HEIGHT + 12.0;
const TICK_HEIGHT: f64 = 18.0;
const SRTT_TOP: f64 = TICKS_TOP + 2.0 * TICK_HEIGHT + 40.0;
const SRTT_HEIGHT: f64 = 130.0;
const HEIGHT: f64 = SRTT_TOP + SRTT_HEIGHT + 64.0;

/// The curves of the upper panel, by name.
const CURVES: [(&str, Value); 4] = [
    ("window shown", |point| point.window_bytes),
    ("flight", |point| Some(point.flight_bytes)),
    ("cwnd", |point| point.cwnd_bytes),
    ("ssthresh", |point| point.ssthresh_bytes),
];
const SRTT: &str = "srtt";

/// `title` names the connection; `limited` says what limited it last.
pub fn svg(title: &str, limited: &str, series: &Series) -> String {
    let mut canvas = Canvas::file(WIDTH, HEIGHT);
    canvas.bold((16.0, 28.0), 17.0, title);
    let lines: Vec<Line> = CURVES
        .iter()
        .map(|(name, of)| Line { name: (*name).into(), points: in_kib(series.curve(*of)) })
        .collect();
    let mut names: Vec<String> = lines.iter().map(|line| line.name.clone()).collect();
    names.push(SRTT.into());
    legend(&mut canvas, 16.0, 44.0, &names);

    let times = series.points.iter().map(|point| point.time_s);
    let x = Axis::spanning("time (s)", Scale::Linear, times);
    let windows = LinePanel { title: String::new(), lines };
    let area = Area { left: LEFT, top: WINDOWS_TOP, width: PLOT_WIDTH, height: WINDOWS_HEIGHT };
    let y = lines::axis("KiB", std::slice::from_ref(&windows));
    // The window often equals the cwnd, and has to be visible behind it.
    lines::draw_over(&mut canvas, area, (&x, &y), &windows, &names, Width::Wide);

    ticks(&mut canvas, TICKS_TOP, "marks", &series.marks_s, &x);
    ticks(&mut canvas, TICKS_TOP + TICK_HEIGHT, "reductions", &series.reductions_s, &x);

    let points = series.curve(|point| point.srtt_us);
    let points = points.into_iter().map(|(time_s, srtt_us)| (time_s, srtt_us / 1e3)).collect();
    let round_trip =
        LinePanel { title: String::new(), lines: vec![Line { name: SRTT.into(), points }] };
    let area = Area { left: LEFT, top: SRTT_TOP, width: PLOT_WIDTH, height: SRTT_HEIGHT };
    let y = lines::axis("srtt (ms)", std::slice::from_ref(&round_trip));
    lines::draw_over(&mut canvas, area, (&x, &y), &round_trip, &names, Width::Fine);
    furnish_below(&mut canvas, area, &x);
    canvas.text(
        (16.0, HEIGHT - 12.0),
        11.0,
        "start",
        Ink::Label,
        &format!("Last limited by {limited}"),
    );
    canvas.finish()
}

fn in_kib(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    points.into_iter().map(|(time_s, bytes)| (time_s, bytes / 1024.0)).collect()
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
        let svg = svg("192.0.2.1:40000 - 192.0.2.2:5001", "the receiver <64 kB>", &series);
        assert_eq!(svg.matches("<polyline").count(), 5);
        for name in
            ["window shown", "flight", "cwnd", "ssthresh", "srtt (ms)", "marks", "reductions"]
        {
            assert!(svg.contains(&format!(">{name}</text>")), "{name}");
        }
        assert!(svg.contains("limited by the receiver &lt;64 kB&gt;"), "{svg}");
        let tick_tops = [TICKS_TOP, TICKS_TOP + TICK_HEIGHT]
            .map(|top| svg.matches(&format!("y1=\"{top:.1}\"")).count());
        assert_eq!(tick_tops, [9, 1]);
    }

    #[test]
    fn nothing_recorded_makes_a_picture_all_the_same() {
        assert!(svg("nothing", "-", &Series::default()).ends_with("</svg>\n"));
    }
}
