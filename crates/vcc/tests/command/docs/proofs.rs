//! docs/proofs.md names the proofs that there are.

use std::collections::BTreeSet;
use std::fs;

use super::page::root;

#[test]
fn the_page_of_proofs_names_each_and_each_has_a_fault() {
    let read = |path: &str| fs::read_to_string(root().join(path)).expect(path);
    let list = read("proofs/list");
    let proofs: Vec<Vec<&str>> = (list.lines().filter(|line| !line.starts_with('#')))
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert!(!proofs.is_empty());
    for proof in &proofs {
        let [_, source, "quick" | "full", _, fault] = proof[..] else {
            panic!("{proof:?}: name, source, when, case and fault are wanted");
        };
        read(&format!("proofs/{source}"));
        read(&format!("proofs/faults/{fault}.patch"));
    }
    let page = read("docs/proofs.md");
    let named: BTreeSet<&str> = (page.lines().filter(|line| line.starts_with("| `")))
        .flat_map(|line| line.split('|').nth(1).unwrap().split(", "))
        .map(|name| name.trim().trim_matches('`'))
        .collect();
    assert_eq!(named, proofs.iter().map(|proof| proof[0]).collect());
}
