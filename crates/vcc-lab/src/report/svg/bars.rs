//! Bars with whiskers from the least to the greatest run.

use super::super::figure::BarPanel;
use super::axis::Axis;
use super::canvas::Canvas;
use super::{Area, colour, distinct, furnish, index_of};

pub(super) fn names(panels: &[BarPanel]) -> Vec<String> {
    distinct(panels.iter().flat_map(|panel| &panel.bars).map(|bar| bar.series.clone()))
}

pub(super) fn draw(
    canvas: &mut Canvas,
    area: impl Fn(usize) -> Area,
    y: &str,
    panels: &[BarPanel],
    names: &[String],
) {
    let values = panels.iter().flat_map(|panel| &panel.bars).map(|bar| bar.max);
    let y = Axis::from_zero(y, values);
    for (index, panel) in panels.iter().enumerate() {
        let area = area(index);
        furnish(canvas, area, &panel.title, &y);
        let slot = area.width / panel.bars.len().max(1) as f64;
        let mut last_label = None;
        for (place, bar) in panel.bars.iter().enumerate() {
            let middle = area.left + slot * (place as f64 + 0.5);
            let height_of = |value: f64| area.height * y.position(value);
            let bottom = area.top + area.height;
            let width = (slot * 0.7).min(60.0);
            let height = height_of(bar.median);
            let body = Area { left: middle - width / 2.0, top: bottom - height, width, height };
            canvas.rectangle(body, colour(index_of(names, &bar.series)));
            let (low, high) = (bottom - height_of(bar.min), bottom - height_of(bar.max));
            if high < low {
                canvas.line((middle, low), (middle, high), "#222222");
            }
            if last_label != Some(&bar.label) {
                canvas.text((middle, bottom + 16.0), 11.0, "middle", "#444444", &bar.label);
            }
            last_label = Some(&bar.label);
        }
    }
}
