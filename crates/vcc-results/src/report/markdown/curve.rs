//! A curve as tables: a row per line, a column per place on the horizontal axis.

use super::text::{code, line, table, wrapped};
use crate::report::numbers::number;
use crate::report::record::{Curve, Record, Row};
use vcc_plot::LinePanel;

/// Of an experiment with a curve, other tables are of the cases that are judged, that the paper has
/// a figure of, or that others are compared with.
pub fn is_in_curve(record: &Record, row: &Row) -> bool {
    let is_base = || {
        let mut bases = record.rows.iter().filter(|other| other.metric == row.metric);
        bases.any(|other| {
            other.judged.as_ref().is_some_and(|it| it.relative_to.as_ref() == Some(&row.case))
        })
    };
    record.curve.is_some() && row.judged.is_none() && !row.has_paper() && !is_base()
}

/// A sentence, and a table per panel.
pub fn curve(record: &Record) -> Vec<String> {
    let Some(Curve { metric, x, panels }) = &record.curve else { return Vec::new() };
    let mut parts = vec![wrapped(&format!("Medians of {} by {}:", code(metric), line(x)))];
    parts.extend(panels.iter().map(of_panel));
    parts
}

fn of_panel(panel: &LinePanel) -> String {
    let mut places: Vec<f64> = Vec::new();
    for (x, _) in panel.lines.iter().flat_map(|line| &line.points) {
        if !places.contains(x) {
            places.push(*x);
        }
    }
    places.sort_by(f64::total_cmp);
    let mut head = vec![line(&panel.title)];
    head.extend(places.iter().map(f64::to_string));
    let rows = panel.lines.iter().map(|curve| {
        let value = |x: &f64| curve.points.iter().find(|point| point.0 == *x).map(|point| point.1);
        let values = places.iter().map(|x| value(x).map(number).unwrap_or_default());
        [code(&curve.name)].into_iter().chain(values).collect()
    });
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    table(&head, &rows.collect::<Vec<_>>()).trim_end().to_owned()
}
