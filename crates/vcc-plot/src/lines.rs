//! Lines over a common horizontal axis.

use serde::{Deserialize, Serialize};

use crate::{Area, Axis, Canvas, Ink, Scale, distinct, furnish, furnish_below, index_of};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LinePanel {
    pub title: String,
    pub lines: Vec<Line>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Line {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

/// Lines with no more points than this have dots on them.
const FEW_POINTS: usize = 20;
/// Points that stand side by side on so much of the width are drawn as their extremes.
const COLUMN_WIDTH: f64 = 0.5;

pub fn names(panels: &[LinePanel]) -> Vec<String> {
    distinct(panels.iter().flat_map(|panel| &panel.lines).map(|line| line.name.clone()))
}

pub fn axis(y: &str, panels: &[LinePanel]) -> Axis {
    let points = panels.iter().flat_map(|panel| &panel.lines).flat_map(|line| &line.points);
    Axis::from_zero(y, points.map(|point| point.1))
}

pub fn draw(
    canvas: &mut Canvas,
    area: Area,
    (x, scale): (&str, Scale),
    y: &Axis,
    panel: &LinePanel,
    names: &[String],
) {
    let points = panel.lines.iter().flat_map(|line| &line.points);
    let x = Axis::spanning(x, scale, points.map(|point| point.0));
    furnish_below(canvas, area, &x);
    // The first of two lines is wide, so that it stays visible where they coincide.
    let first = if panel.lines.len() == 2 { Width::Wide } else { Width::Fine };
    draw_over(canvas, area, (&x, y), panel, names, first);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    Fine,
    Wide,
    /// Visible on both sides of a fine line of many points, which coincides with it.
    Band,
}

impl Width {
    fn pixels(self) -> f64 {
        match self {
            Self::Fine => 1.4,
            Self::Wide => 3.5,
            Self::Band => 5.5,
        }
    }
}

/// Draws a panel over a horizontal axis that several panels share.
pub fn draw_over(
    canvas: &mut Canvas,
    area: Area,
    (x, y): (&Axis, &Axis),
    panel: &LinePanel,
    names: &[String],
    first: Width,
) {
    furnish(canvas, area, &panel.title, y);
    let place = |point: &(f64, f64)| {
        let left = area.left + area.width * x.position(point.0);
        (left, area.top + area.height * (1.0 - y.position(point.1)))
    };
    for (number, line) in panel.lines.iter().enumerate() {
        let width = if number == 0 { first } else { Width::Fine }.pixels();
        let ink = Ink::Series(index_of(names, &line.name));
        let points: Vec<(f64, f64)> = line.points.iter().map(place).collect();
        canvas.path(thinned(&points).into_iter(), ink, width);
        if points.len() <= FEW_POINTS {
            points.iter().for_each(|&point| canvas.dot(point, ink));
        }
    }
}

/// Keeps the first, last, minimum and maximum of each pixel column.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let column = |point: &(f64, f64)| (point.0 / COLUMN_WIDTH).floor();
    let mut kept = Vec::new();
    for same in points.chunk_by(|a, b| column(a) == column(b)) {
        let by_height = |&a: &usize, &b: &usize| same[a].1.total_cmp(&same[b].1);
        let extremes = [(0..same.len()).min_by(by_height), (0..same.len()).max_by(by_height)];
        let mut few = vec![0, same.len() - 1];
        few.extend(extremes.into_iter().flatten());
        few.sort_unstable();
        few.dedup();
        kept.extend(few.into_iter().map(|index| same[index]));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dense_line_keeps_its_extremes_and_its_order() {
        let dense = [(1.0, 5.0), (1.1, 9.0), (1.2, 6.0), (1.3, 1.0), (1.4, 4.0), (2.0, 3.0)];
        let kept = thinned(&dense);
        assert_eq!(kept, [(1.0, 5.0), (1.1, 9.0), (1.3, 1.0), (1.4, 4.0), (2.0, 3.0)]);
        assert_eq!(thinned(&dense[..1]), dense[..1]);
        assert!(thinned(&[]).is_empty());
    }
}
