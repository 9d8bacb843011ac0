//! The documentation of the metrics agrees with the code.

use std::collections::BTreeSet;

use vcc_web::METRICS;

use crate::written::{names, read};

#[test]
fn the_documentation_has_every_metric_and_no_other() {
    let text = read("docs/metrics.md");
    let known: BTreeSet<&str> = METRICS.iter().map(|metric| metric.name).collect();
    assert_eq!(names(&text), known);
    for metric in METRICS {
        let start = format!("| `{}` | {} |", metric.name, metric.kind.name());
        let mut rows = text.lines().filter(|line| line.starts_with(&start));
        let row = rows.next().unwrap_or_else(|| panic!("no row begins with {start}"));
        assert_eq!(rows.next(), None, "{start}");
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, _, _, labels, meaning, advice, _] = cells[..] else { panic!("{row}") };
        let wanted: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        assert_eq!(labels, wanted.join(", "), "{}", metric.name);
        assert!(!meaning.is_empty() && !advice.is_empty(), "{row}");
    }
}
