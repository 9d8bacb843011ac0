//! The documentation of the metrics agrees with the code.

use std::collections::BTreeSet;

use vcc_testing::documents::{Document, Row};
use vcc_web::{METRICS, Metric};

use crate::written::names;

/// A sentence as a cell of a table.
fn cell(help: &str) -> String {
    let help = help.trim_end_matches('.');
    let is_name = help.chars().nth(1).is_some_and(char::is_uppercase);
    match help.chars().next() {
        Some(first) if !is_name => first.to_lowercase().chain(help.chars().skip(1)).collect(),
        _ => help.to_owned(),
    }
}

fn row(metric: &Metric) -> Row {
    let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
    let cells = vec![metric.kind.name().into(), labels.join(", "), cell(metric.help)];
    Row { name: metric.name, cells }
}

#[test]
fn the_documentation_has_every_metric_and_no_other() {
    let page = Document::new("docs/metrics.md", "cargo test -p vcc-web --test served documents");
    let text = page.text();
    let known: BTreeSet<&str> = METRICS.iter().map(|metric| metric.name).collect();
    assert_eq!(names(&text), known);
    let rows: Vec<Row> = METRICS.iter().map(row).collect();
    page.assert_rows(&rows, |name| name.starts_with("vcc_"));
}
