//! A curve as tables: a row per line, a column per place on the horizontal axis.

use super::text::{code, line, table, wrapped};
use crate::report::figure::Figure;
use crate::report::numbers::number;
use crate::report::{CaseReport, Report};
use vcc_plot::LinePanel;

/// The metric, the horizontal axis and the panels, if the experiment's figure is a curve.
fn drawn(report: &Report) -> Option<(&str, &str, &[LinePanel])> {
    match &report.figure {
        Figure::Lines { x, y, panels, .. } if report.definitions.contains_key(y) => {
            Some((y, x, panels))
        }
        _ => None,
    }
}

/// Of an experiment with a curve, other tables are of the cases that are judged, that the paper has
/// a figure of, or that others are compared with.
pub fn is_in_curve(report: &Report, case: &CaseReport, metric: &str) -> bool {
    let is_base = || {
        let verdicts = report.cases.iter().flat_map(|case| &case.verdicts);
        let mut bases = verdicts.filter(|verdict| verdict.metric == metric);
        bases.any(|verdict| verdict.relative_to.as_ref() == Some(&case.name))
    };
    let is_judged = || case.verdicts.iter().any(|verdict| verdict.metric == metric);
    let of_paper = || case.metrics.get(metric).is_some_and(|it| it.paper.is_some());
    drawn(report).is_some() && !is_judged() && !of_paper() && !is_base()
}

/// A sentence, and a table per panel.
pub fn curve(report: &Report) -> Vec<String> {
    let Some((metric, x, panels)) = drawn(report) else { return Vec::new() };
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
