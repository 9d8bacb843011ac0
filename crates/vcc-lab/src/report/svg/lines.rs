//! Lines over a common horizontal axis.

use super::super::figure::{LinePanel, Scale};
use super::axis::Axis;
use super::canvas::Canvas;
use super::{Area, colour, distinct, furnish, index_of};

/// Lines with no more points than this have dots on them.
const FEW_POINTS: usize = 20;

pub(super) fn names(panels: &[LinePanel]) -> Vec<String> {
    distinct(panels.iter().flat_map(|panel| &panel.lines).map(|line| line.name.clone()))
}

pub(super) fn draw(
    canvas: &mut Canvas,
    area: impl Fn(usize) -> Area,
    (x, scale, y): (&str, Scale, &str),
    panels: &[LinePanel],
    names: &[String],
) {
    let points = || panels.iter().flat_map(|panel| &panel.lines).flat_map(|line| &line.points);
    let y = Axis::from_zero(y, points().map(|point| point.1));
    for (index, panel) in panels.iter().enumerate() {
        let area = area(index);
        let points = panel.lines.iter().flat_map(|line| &line.points);
        let x = Axis::spanning(x, scale, points.map(|point| point.0));
        furnish(canvas, area, &panel.title, &y);
        let place = |point: &(f64, f64)| {
            let left = area.left + area.width * x.position(point.0);
            (left, area.top + area.height * (1.0 - y.position(point.1)))
        };
        let bottom = area.top + area.height;
        for tick in x.ticks() {
            let left = area.left + area.width * x.position(tick);
            canvas.line((left, bottom), (left, bottom + 4.0), "#888888");
            canvas.text((left, bottom + 16.0), 11.0, "middle", "#444444", &x.label(tick));
        }
        let middle = area.left + area.width / 2.0;
        canvas.text((middle, bottom + 32.0), 11.0, "middle", "#444444", x.name());
        for (number, line) in panel.lines.iter().enumerate() {
            // Of two, the first is seen behind the second also where they are the same.
            let width = if panel.lines.len() == 2 && number == 0 { 3.5 } else { 1.4 };
            let colour = colour(index_of(names, &line.name));
            canvas.path(line.points.iter().map(place), colour, width);
            if line.points.len() <= FEW_POINTS {
                line.points.iter().for_each(|point| canvas.dot(place(point), colour));
            }
        }
    }
}
