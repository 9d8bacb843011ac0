//! docs/architecture.md says which crate may use which, docs/translation.md what each file of the engine does.

use std::collections::BTreeSet;
use std::fs;

use super::page::{root, section};

/// The crates of the table, from the command down.
fn in_the_table() -> Vec<String> {
    let section = section("docs/architecture.md", "Crates");
    let cells = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    cells.map(|(name, _)| name.to_owned()).collect()
}

/// The project's crates that one uses, tests and build scripts aside.
fn used_by(name: &str) -> Vec<String> {
    let manifest = root().join("crates").join(name).join("Cargo.toml");
    let manifest = fs::read_to_string(manifest).expect("UTF-8");
    let tables = manifest.split("\n[");
    let dependencies = tables.filter_map(|table| table.strip_prefix("dependencies]"));
    let lines = dependencies.flat_map(str::lines);
    let names = lines.filter_map(|line| line.split(['.', ' ', '=']).next());
    names.filter(|name| name.starts_with("vcc-")).map(str::to_owned).collect()
}

#[test]
fn every_crate_is_in_the_table_above_those_that_it_uses() {
    let table = in_the_table();
    let listed: BTreeSet<&str> = table.iter().map(String::as_str).collect();
    let entries = fs::read_dir(root().join("crates")).expect("crates");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let crates: BTreeSet<String> = names.map(|name| name.into_string().expect("UTF-8")).collect();
    assert_eq!(listed, crates.iter().map(String::as_str).collect());
    let mut arrows = 0;
    for (row, name) in table.iter().enumerate() {
        for used in used_by(name) {
            arrows += 1;
            assert!(table[row + 1..].contains(&used), "{name} uses {used}, which is above it");
        }
    }
    assert!(arrows > 20, "dependencies are found: {arrows}");
}

#[test]
fn every_file_of_the_engine_is_in_the_table_of_translation() {
    let page = fs::read_to_string(root().join("docs/translation.md")).expect("UTF-8");
    let entries = fs::read_dir(root().join("engine")).expect("the engine");
    for entry in entries {
        let name = entry.expect("an entry").file_name().into_string().expect("UTF-8");
        let cell = if name.ends_with(".h") { format!("`{name}`") } else { format!("`{name}/`") };
        assert!(page.contains(&cell), "docs/translation.md has no row for engine/{name}");
    }
}
