//! docs/results.md has a table of each experiment, or says that it has none.

use std::fs;

use super::page::{root, section};

#[test]
fn every_experiment_has_a_table_or_a_reason_for_none() {
    let page = fs::read_to_string(root().join("docs/results.md")).expect("UTF-8");
    let without = section("docs/results.md", "Not measured with this version");
    let entries = fs::read_dir(root().join("experiments")).expect("the experiments");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let names = names.map(|name| name.into_string().expect("UTF-8"));
    let ids: Vec<_> =
        names.filter_map(|name| name.strip_suffix(".toml").map(str::to_owned)).collect();
    assert!(ids.len() > 50, "experiments are found: {ids:?}");
    for id in ids {
        let has_table = page.contains(&format!("\n### `{id}`: "));
        let is_named = without.contains(&format!("`{id}`"));
        assert!(has_table != is_named, "{id}: a table: {has_table}, named: {is_named}");
    }
}
