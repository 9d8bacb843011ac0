//! docs/proofs.md names the proofs that there are, and each fault is one that something must notice.

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
        read(&format!("faults/{fault}.patch"));
    }
    let page = read("docs/proofs.md");
    let named: BTreeSet<&str> = (page.lines().filter(|line| line.starts_with("| `")))
        .flat_map(|line| line.split('|').nth(1).unwrap().split(", "))
        .map(|name| name.trim().trim_matches('`'))
        .collect();
    assert_eq!(named, proofs.iter().map(|proof| proof[0]).collect());
}

/// The first words of the lines of a list.
fn listed(path: &str, column: usize) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join(path)).expect(path);
    (text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()))
        .map(|line| line.split_whitespace().nth(column).expect(line).to_owned())
        .collect()
}

#[test]
fn each_fault_is_for_a_proof_or_for_a_test() {
    let tests = listed("faults/list", 0);
    assert!(tests.len() >= 50);
    let noticed: BTreeSet<String> = &tests | &listed("proofs/list", 4);
    let files = fs::read_dir(root().join("faults")).expect("faults");
    let patches: BTreeSet<String> = files
        .filter_map(|file| file.expect("a file").file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".patch").map(str::to_owned))
        .collect();
    assert_eq!(noticed, patches);
}
