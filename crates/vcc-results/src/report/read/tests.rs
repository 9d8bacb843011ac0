use super::*;
use crate::report::tests::report;
use std::slice::from_ref;

use tempfile::TempDir;

/// A directory of its own for what a test writes, gone with it.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().to_owned()
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

fn json(seed: u64) -> String {
    let mut report = report(true, true);
    report.seed = seed;
    serde_json::to_string_pretty(&report).unwrap()
}

fn seeds(results: &Results) -> Vec<u64> {
    results.files.iter().map(|file| file.report.seed).collect()
}

#[test]
fn what_cannot_be_read_is_named_with_what_to_do() {
    let folder = Folder::new();
    let whole = json(1);
    let cut = &whole[..whole.len() / 2];
    let line = cut.lines().count();
    let truncated = format!("is truncated in line {line}");
    let version = format!("\"format_version\": {FORMAT_VERSION}");
    for (text, expected) in [
        ("", "is empty"),
        (" \n", "is empty"),
        (cut, truncated.as_str()),
        ("<html>", "is not JSON: expected value at line 1"),
        ("[1, 2]", "is not a result of `vcc-lab run"),
        ("{\"datapath\": 1}", "is not a result of `vcc-lab run"),
        (&whole.replace(&version, "\"format_version\": 99"), "is a result of format_version 99"),
        (&whole.replace(&format!("{version},"), ""), "is a result without format_version"),
        (&whole.replace("\"seed\": 1", "\"seed\": \"one\""), "is a damaged result: invalid type"),
    ] {
        let path = folder.file("it.json", text);
        let error = read_results(from_ref(&path)).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{} {expected}", path.display())), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
    let missing = read_results(&[folder.0.path().join("no.json")]).unwrap_err().to_string();
    assert!(missing.starts_with("cannot read") && missing.contains("no.json"), "{missing}");
}

#[test]
fn a_directory_is_all_results_in_it() {
    let folder = Folder::new();
    folder.file("b.json", &json(2));
    folder.file("a.json", &json(1));
    folder.file("bench.json", "{\"datapath\": []}");
    folder.file("plot.svg", "<svg/>");
    let results = read_results(&[folder.path()]).unwrap();
    assert_eq!(seeds(&results), [1, 2]);
    let [left_out] = &results.left_out[..] else { panic!("{:?}", results.left_out) };
    assert!(left_out.contains("bench.json: left out: is not a result"), "{left_out}");
    // An existing result that cannot be read is an error.
    folder.file("c.json", &json(3)[..100]);
    let error = read_results(&[folder.path()]).unwrap_err().to_string();
    assert!(error.contains("c.json is truncated"), "{error}");
}

#[test]
fn a_directory_without_results_is_an_error() {
    let folder = Folder::new();
    folder.file("bench.json", "{}");
    let error = read_results(&[folder.path()]).unwrap_err().to_string();
    assert!(error.contains("holds no result"), "{error}");
}

#[test]
fn what_has_been_read_is_not_read_again() {
    let folder = Folder::new();
    let (first, other) = (folder.file("a.json", &json(1)), folder.file("b.json", &json(2)));
    let copy = folder.file("c.json", &json(1));
    let results = read_results(&[first.clone(), other, copy, first, folder.path()]).unwrap();
    assert_eq!(seeds(&results), [1, 2], "the same experiment twice is two results");
    let [left_out] = &results.left_out[..] else { panic!("{:?}", results.left_out) };
    assert!(left_out.contains("c.json: left out: it is a copy of"), "{left_out}");
}
