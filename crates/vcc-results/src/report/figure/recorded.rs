//! Figures of a run's recordings, where the report has kept them.

use super::{Figure, over_time};
use crate::report::{Report, Series};
use std::collections::BTreeMap;

/// Figures of the first valid run of each case; figures without points are omitted.
pub(in crate::report) fn recorded(report: &Report) -> Vec<Figure> {
    let kept = report.cases.iter().filter_map(|case| {
        let series = case.valid_runs().find_map(|run| run.series.clone())?;
        Some((case.name.clone(), series))
    });
    let series: BTreeMap<String, Series> = kept.collect();
    let figures = [over_time::goodput, over_time::windows, over_time::tracking, over_time::queue];
    let figures = figures.map(|figure| with_points(figure(&report.cases, &series)));
    figures.into_iter().flatten().filter(|figure| figure.y() != report.figure.y()).collect()
}

fn with_points(figure: Figure) -> Option<Figure> {
    let Figure::Lines { x, x_scale, y, mut panels } = figure else { return Some(figure) };
    panels.retain(|panel| panel.lines.iter().any(|line| !line.points.is_empty()));
    (!panels.is_empty()).then_some(Figure::Lines { x, x_scale, y, panels })
}
