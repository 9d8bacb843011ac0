//! docs/troubleshooting.md has a row for everything that an operator may ask about.

use std::collections::BTreeSet;
use std::fs;

use vcc_port::counters;

use super::page::root;
use crate::vcc;

fn page() -> String {
    fs::read_to_string(root().join("docs/troubleshooting.md")).expect("UTF-8")
}

/// The names in the first cells of a section's table.
fn rows(section: &str) -> BTreeSet<String> {
    let page = page();
    let text = page.split(&format!("\n## {section}\n")).nth(1).expect("the section");
    let text = text.split("\n## ").next().unwrap_or_default();
    let cells = text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    cells.map(|(name, _)| name.to_owned()).collect()
}

fn set<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

#[test]
fn every_limit_has_its_row() {
    let complaint = vcc("flows --limited-by nothing").complaint(2);
    let (_, limits) = complaint.split_once("[possible values: ").expect("the values");
    let limits = limits.split_once(']').expect("their end").0.split(", ");
    assert_eq!(rows("LIMITED-BY"), set(limits));
}

#[test]
fn every_counter_has_its_row() {
    let names = counters::ALL.iter().map(|counter| counter.name);
    assert_eq!(rows("Counters of `vcc ports`"), set(names));
}
