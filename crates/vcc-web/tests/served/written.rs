//! The metrics and labels that a file of the project names.

use std::collections::BTreeSet;

use vcc_web::{Kind, METRICS, Metric};

/// Words of a text that are names of metrics.
pub fn names(text: &str) -> BTreeSet<&str> {
    words(text).into_iter().map(|(_, word)| word).filter(|word| word.starts_with("vcc_")).collect()
}

fn words(text: &str) -> Vec<(usize, &str)> {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(begin) = rest.find(is_of_word) {
        rest = &rest[begin..];
        let end = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
        words.push((text.len() - rest.len(), &rest[..end]));
        rest = &rest[end..];
    }
    words
}

/// The metric of this name, or of which this is a part, as a histogram has some.
fn metric(name: &str) -> Option<&'static Metric> {
    let find = |name: &str| METRICS.iter().find(|metric| metric.name == name);
    let of_histogram = ["_bucket", "_sum", "_count"]
        .iter()
        .filter_map(|part| find(name.strip_suffix(part)?))
        .find(|metric| metric.kind == Kind::Histogram);
    let whole = find(name).filter(|metric| metric.kind != Kind::Histogram);
    whole.or(of_histogram)
}

/// Asserts that an expression asks for metrics that there are, by labels that they have, and for the growth of
/// what only grows. Returns their names.
#[track_caller]
pub fn assert_asks(expression: &str) -> BTreeSet<&str> {
    /// Those that Prometheus adds.
    const OTHERS: &[&str] = &["instance", "job", "le"];
    let known =
        |metric: &Metric, label: &str| metric.labels.contains(&label) || OTHERS.contains(&label);
    let names = names(expression);
    assert!(!names.is_empty() || expression.contains("up{"), "no metric: {expression}");
    for (at, name) in words(expression).into_iter().filter(|(_, word)| word.starts_with("vcc_")) {
        let metric = metric(name).unwrap_or_else(|| panic!("{name} is no metric: {expression}"));
        let only_grows = metric.kind != Kind::Gauge;
        let before = &expression[..at];
        // With an offset, an expression compares by itself.
        let grows = ["rate(", "increase("].iter().any(|function| before.ends_with(function))
            || (only_grows && expression.contains(" offset "));
        assert_eq!(only_grows, grows, "{name}: {expression}");
        let matchers = expression[at + name.len()..].strip_prefix('{');
        let matchers = matchers.and_then(|rest| rest.split_once('}')).map_or("", |it| it.0);
        // Values have no comma.
        for matcher in matchers.split(',').filter(|it| !it.trim().is_empty()) {
            let label = words(matcher)[0].1;
            assert!(known(metric, label), "{name} has no label {label}: {expression}");
        }
        let by = before.rsplit_once(" by (").and_then(|(_, rest)| rest.split_once(')'));
        for label in by.map_or("", |it| it.0).split(',').filter(|it| !it.is_empty()) {
            assert!(known(metric, label.trim()), "{name} has no label {label}: {expression}");
        }
    }
    names
}

#[test]
#[should_panic(expected = "has no label tenant")]
fn a_label_that_is_not_there_is_found() {
    assert_asks("sum(vcc_rule_flows{tenant=\"acme\"})");
}

#[test]
#[should_panic(expected = "is no metric")]
fn a_histogram_is_asked_for_its_parts() {
    assert_asks("rate(vcc_port_guest_delay_seconds[5m])");
}
