//! docs/troubleshooting.md has a row for everything that an operator may ask about.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use vcc_port::counters;
use vcc_testing::documents::{Document, Row};

use super::page::{root, section};
use crate::vcc;

fn page() -> String {
    fs::read_to_string(root().join("docs/troubleshooting.md")).expect("UTF-8")
}

/// The names in the first cells of a section's table.
fn rows(heading: &str) -> BTreeSet<String> {
    let text = section("docs/troubleshooting.md", heading);
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
fn every_counter_has_its_row_and_means_there_what_the_command_says() {
    let names = set(counters::ALL.iter().map(|counter| counter.name));
    assert_eq!(rows("Counters of `vcc ports`"), names);
    let row = |counter: &counters::Counter| Row {
        name: counter.name,
        cells: vec![counter.meaning.into()],
    };
    let wanted: Vec<Row> = counters::ALL.iter().map(row).collect();
    let page = Document::new("docs/troubleshooting.md", "cargo test -p vcc --test command counter");
    page.assert_rows(&wanted, |name| names.contains(name));
}

#[test]
fn every_problem_and_journal_line_is_explained() {
    let page = page();
    let mut count = 0;
    let mut explained = |file: &Path, literal: &str| {
        count += 1;
        let part = fixed_part(literal);
        assert!(page.contains(part), "{}: `{part}` of \"{literal}\"", file.display());
    };
    let daemon = root().join("crates/vcc-daemon/src");
    for file in sources(&daemon) {
        let code = fs::read_to_string(&file).expect("UTF-8");
        let is_problems = file.ends_with("problems.rs");
        for level in ["error", "warning", "notice", "info"] {
            let call = format!("journal::{level}!(");
            first_literals(&code, &call).iter().for_each(|literal| explained(&file, literal));
        }
        if is_problems || code.contains("Shortage::Connections =>") {
            let describes = if is_problems { "format!(" } else { "=> format!(" };
            first_literals(&code, describes).iter().for_each(|literal| explained(&file, literal));
        }
    }
    assert!(count > 25, "messages are found: {count}");
}

fn sources(directory: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).expect("sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.file_name().is_some_and(|name| name != "journal.rs") {
            files.push(path);
        }
    }
    files
}

/// The text of each call that begins with a literal, perhaps behind the port that it is about.
fn first_literals(code: &str, call: &str) -> Vec<String> {
    let arguments = code.split(call).skip(1).map(|rest| {
        let rest = rest.trim_start();
        let about = rest.strip_prefix("port =").and_then(|rest| rest.split_once(','));
        about.map_or(rest, |(_, rest)| rest.trim_start())
    });
    let literal = |text: &str| {
        let text = text.strip_prefix('"')?;
        let end = (0..text.len())
            .find(|&i| text.as_bytes()[i] == b'"' && (i == 0 || text.as_bytes()[i - 1] != b'\\'))?;
        let lines: Vec<&str> = text[..end].split("\\\n").collect();
        let joined = lines.iter().enumerate();
        Some(joined.map(|(i, line)| if i == 0 { line } else { line.trim_start() }).collect())
    };
    arguments.filter_map(literal).collect()
}

/// A part of a message that is always the same: the first one that is long enough to be found.
fn fixed_part(literal: &str) -> &str {
    let parts = literal.split('{').flat_map(|part| match part.split_once('}') {
        Some((_, after)) => [after, ""],
        None => [part, ""],
    });
    let parts = parts.flat_map(|part| part.split(['`', '"', '\\', ';', '(']));
    let parts: Vec<&str> = parts.map(|part| part.trim_matches([' ', ':', ',', '.', ')'])).collect();
    let first = parts.iter().find(|part| part.len() >= 8);
    first.or_else(|| parts.iter().max_by_key(|part| part.len())).unwrap_or(&"")
}

#[test]
fn literals_are_found_in_code() {
    let code = "say(\n    port = &device,\n    \"{device}: one \\\n     two {x}\"\n); say(\"three\"); say(&told);";
    assert_eq!(first_literals(code, "say("), ["{device}: one two {x}", "three"]);
    assert_eq!(fixed_part("{device}: one two {x}, and"), "one two");
}
