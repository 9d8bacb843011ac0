//! Bars with whiskers from the least to the greatest run.

use crate::report::figure::{Bar, BarPanel};
use vcc_plot::{Area, Axis, Canvas, Ink, distinct, furnish, index_of};

/// Approximate width of a label's character.
const CHARACTER_WIDTH: f64 = 6.0;
const SLANT_DEGREES: i32 = -40;

pub(super) fn names(panels: &[BarPanel]) -> Vec<String> {
    distinct(bars(panels).map(|bar| bar.series.clone()))
}

/// Whether the labels below the bars say what a legend would.
pub(super) fn are_labelled(panels: &[BarPanel]) -> bool {
    bars(panels).all(|bar| bar.label == bar.series)
}

fn bars(panels: &[BarPanel]) -> impl Iterator<Item = &Bar> {
    panels.iter().flat_map(|panel| &panel.bars)
}

pub(super) fn axis(y: &str, panels: &[BarPanel]) -> Axis {
    Axis::from_zero(y, bars(panels).flat_map(|bar| [bar.min, bar.max]))
}

pub(super) fn draw(canvas: &mut Canvas, area: Area, y: &Axis, panel: &BarPanel, names: &[String]) {
    let slot = area.width / panel.bars.len().max(1) as f64;
    let longest = panel.bars.iter().map(|bar| bar.label.chars().count()).max().unwrap_or(0);
    let label_width = longest as f64 * CHARACTER_WIDTH;
    // Bars of several series may share a label, and then have more room for it.
    let labels = distinct(panel.bars.iter().map(|bar| bar.label.clone())).len().max(1) as f64;
    let is_slanted = label_width > area.width / labels;
    let drop = f64::from(SLANT_DEGREES).to_radians().sin().abs() * label_width;
    let height = if is_slanted { area.height - (drop - 16.0).max(0.0) } else { area.height };
    let area = Area { height: height.max(area.height / 3.0), ..area };
    furnish(canvas, area, &panel.title, y);

    let bottom = area.top + area.height;
    let height_at = |value: f64| bottom - area.height * y.position(value);
    let mut last_label = None;
    for (place, bar) in panel.bars.iter().enumerate() {
        let middle = area.left + slot * (place as f64 + 0.5);
        let width = (slot * 0.7).min(60.0);
        let (zero, end) = (height_at(0.0), height_at(bar.median));
        let (top, height) = (zero.min(end), (zero - end).abs());
        let body = Area { left: middle - width / 2.0, top, width, height };
        canvas.rectangle(body, Ink::Series(index_of(names, &bar.series)));
        let (low, high) = (height_at(bar.min), height_at(bar.max));
        if high < low {
            canvas.line((middle, low), (middle, high), Ink::Text);
        }
        if last_label != Some(&bar.label) {
            match is_slanted {
                true => {
                    let at = (middle + 4.0, bottom + 14.0);
                    canvas.turned(at, SLANT_DEGREES, 11.0, "end", &bar.label);
                }
                false => {
                    canvas.text((middle, bottom + 16.0), 11.0, "middle", Ink::Label, &bar.label);
                }
            }
        }
        last_label = Some(&bar.label);
    }
}
