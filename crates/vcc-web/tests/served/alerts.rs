//! The alert rules for Prometheus: each is complete, asks for metrics that there are, and is explained.

use std::path::{Path, PathBuf};
use std::process::Command;

use vcc_port::counters;
use vcc_testing::skip;

use crate::written::assert_asks;

const RULES: &str = include_str!("../../../../packaging/prometheus/vcc.rules.yml");
const PAGE: &str = include_str!("../../../../docs/troubleshooting.md");

/// One rule: its lines.
struct Alert<'a>(Vec<&'a str>);

impl<'a> Alert<'a> {
    #[track_caller]
    fn get(&self, key: &str) -> &'a str {
        let value = self.0.iter().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
        value.unwrap_or_else(|| panic!("no {key} in {:#?}", self.0))
    }
}

/// Each value is in the line of its key.
fn alerts() -> Vec<Alert<'static>> {
    let rules = RULES.split("      - ").skip(1);
    rules.map(|rule| Alert(rule.lines().map(str::trim).collect())).collect()
}

/// The anchors of the headings of a page.
fn anchors(page: &str) -> Vec<String> {
    let headings = page.lines().filter_map(|line| line.strip_prefix("## "));
    let in_anchors = |c: &char| c.is_alphanumeric() || matches!(c, '-' | ' ');
    let anchor = |heading: &str| -> String {
        heading.to_lowercase().chars().filter(in_anchors).collect::<String>().replace(' ', "-")
    };
    headings.map(anchor).collect()
}

#[test]
fn alerts_are_complete_and_ask_for_metrics_that_there_are() {
    let alerts = alerts();
    assert_eq!(alerts.len(), RULES.matches("alert: ").count());
    let mut names: Vec<&str> = alerts.iter().map(|alert| alert.get("alert")).collect();
    for alert in &alerts {
        let name = alert.get("alert");
        let expression = alert.get("expr");
        assert_asks(expression);
        let (_, reasons) = expression.split_once("reason=").unwrap_or_default();
        let reasons = reasons.split('"').nth(1).into_iter().flat_map(|them| them.split('|'));
        for reason in reasons {
            assert!(counters::ALL.iter().any(|counter| counter.name == reason), "{name}: {reason}");
        }
        assert!(["critical", "warning", "info"].contains(&alert.get("severity")), "{name}");
        assert!(alert.get("for").ends_with('m'), "{name}");
        assert!(alert.get("summary").starts_with("\"{{ $labels.instance }}: "), "{name}");
        let runbook = alert.get("runbook_url");
        let anchor = runbook.strip_prefix("file:/usr/share/doc/vcc/docs/troubleshooting.md#");
        let anchor = anchor.unwrap_or_else(|| panic!("{name}: {runbook}"));
        assert!(anchors(PAGE).iter().any(|it| it == anchor), "{name}: no heading #{anchor}");
        assert!(PAGE.contains(&format!("\n| `{name}` | ")), "{name} has no row in Alerts");
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), alerts.len(), "names are unique: {names:?}");
}

#[test]
fn prometheus_accepts_the_alerts() {
    let file: PathBuf =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/prometheus/vcc.rules.yml");
    let Ok(output) = Command::new("promtool").args(["check", "rules"]).arg(file).output() else {
        return skip("promtool is not installed");
    };
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
}
