use super::*;
use crate::report::Report;
use crate::report::record::tests::results;
use crate::report::tests::report;

/// A checkout with a page that has a table.
fn checkout() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for folder in ["results/data", "docs/results"] {
        fs::create_dir_all(root.path().join(folder)).unwrap();
    }
    let table = "<!-- measured: experiments * -->\n<!-- /measured -->\n";
    fs::write(root.path().join("docs/results.md"), table).unwrap();
    fs::write(root.path().join("README.md"), "no table\n").unwrap();
    root
}

fn write(root: &Path, files: &[(PathBuf, String)]) {
    files.iter().for_each(|(path, text)| fs::write(root.join(path), text).unwrap());
}

#[test]
fn a_renewed_result_changes_its_data_its_page_and_its_row() {
    let root = checkout();
    let other = Report { experiment: "acdc-fig15".into(), ..report(true, true) };
    let both = results(vec![report(true, true), other]);
    let first = record(root.path(), &both, &|_| None).unwrap();
    write(root.path(), &first.files);
    let same = record(root.path(), &Results::default(), &|_| None).unwrap();
    assert_eq!(same.files, first.files, "all is made of the data");
    let newer = Report { finished_unix_s: 2_000_000_000, ..report(true, true) };
    let next = record(root.path(), &results(vec![newer]), &|_| None).unwrap();
    assert_eq!(next.names, ["vcc-fig11"]);
    let changed: Vec<_> = next
        .files
        .iter()
        .filter(|file| !first.files.contains(file))
        .map(|(path, _)| path.to_str().unwrap())
        .collect();
    let expected = ["results/data/vcc-fig11.json", "docs/results/vcc-fig11.md", "docs/results.md"];
    assert_eq!(changed, expected);
    let page = &next.files.last().unwrap().1;
    assert_eq!(page.matches("(results/vcc-fig11.md)").count(), 1, "{page}");
}

#[test]
fn what_cannot_be_read_is_named() {
    let root = checkout();
    let fail = || record(root.path(), &Results::default(), &|_| None).unwrap_err().to_string();
    fs::write(root.path().join("results/data/x.json"), "{}").unwrap();
    let error = fail();
    assert!(error.contains("results/data/x.json is a damaged record: missing field"), "{error}");
    fs::remove_file(root.path().join("results/data/x.json")).unwrap();
    fs::write(root.path().join("README.md"), "\n<!-- measured: x -->\n").unwrap();
    let error = fail();
    assert!(error.contains("README.md:2: 'measured: x' is none of"), "{error}");
}
