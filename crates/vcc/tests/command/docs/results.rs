//! docs/results.md has a row of each experiment, or says that it has none; all that is made of
//! results/data is as the command makes it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::CommandOutput;

use super::host::lab;
use super::page::{root, section};

/// The lines of the table of all results.
fn rows() -> Vec<String> {
    let table = section("docs/results.md", "Experiments");
    table.lines().filter(|line| line.starts_with("| [")).map(str::to_owned).collect()
}

/// Names and texts of the files of a folder with this extension.
fn files(folder: &Path, extension: &str) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    let paths = entries.map(|entry| entry.path());
    let wanted = paths.filter(|path| path.extension().is_some_and(|it| it == extension));
    let text = |path: &Path| fs::read_to_string(path).expect("UTF-8");
    let name = |path: &Path| path.file_name().unwrap().to_str().expect("UTF-8").to_owned();
    wanted.map(|path| (name(&path), text(&path))).collect()
}

#[test]
fn every_experiment_has_a_row_or_a_reason_for_none() {
    let rows = rows();
    let without = section("docs/results.md", "Not measured with this version");
    let experiments = files(&root().join("experiments"), "toml");
    assert!(experiments.len() > 50, "experiments are found: {experiments:?}");
    for name in experiments.keys() {
        let id = name.strip_suffix(".toml").expect("the extension");
        let has_row = rows.iter().any(|row| row.starts_with(&format!("| [`{id}`](")));
        let is_named = without.contains(&format!("`{id}`"));
        assert!(has_row != is_named, "{id}: a row: {has_row}, named: {is_named}");
    }
}

#[test]
fn every_row_has_its_page_and_its_data() {
    let name = |row: &String| {
        let (name, rest) = row.strip_prefix("| [`")?.split_once("`](results/")?;
        rest.starts_with(&format!("{name}.md) |")).then(|| name.to_owned())
    };
    let mut linked: Vec<String> =
        rows().iter().map(|row| name(row).unwrap_or_else(|| panic!("{row}"))).collect();
    linked.sort();
    assert!(linked.len() > 50, "rows are found: {linked:?}");
    for (folder, extension) in [("docs/results", "md"), ("results/data", "json")] {
        let files = files(&root().join(folder), extension);
        let names = files.keys().map(|it| it.strip_suffix(&format!(".{extension}")).unwrap());
        let mut names: Vec<&str> = names.filter(|name| !name.starts_with("bench-")).collect();
        names.sort();
        assert_eq!(names, linked, "{folder}");
    }
}

/// In a copy, which the command makes anew.
#[test]
fn what_is_made_of_the_data_is_as_the_command_makes_it() {
    assert!(lab().is_file(), "there is no vcc-lab: `cargo build -p vcc-lab` makes it");
    let folder = tempfile::tempdir().expect("a folder");
    let copy = folder.path();
    let parts = [("", "md"), ("docs", "md"), ("docs/results", "md"), ("results/data", "json")];
    for (part, extension) in parts {
        fs::create_dir_all(copy.join(part)).expect("a folder");
        for (name, text) in files(&root().join(part), extension) {
            fs::write(copy.join(part).join(name), text).expect("written");
        }
    }
    let report = || -> CommandOutput {
        let mut command = Command::new(lab());
        command.current_dir(copy).args(["report", "--record"]);
        command.output().expect("the command").into()
    };
    assert_eq!(report().well(), "", "these files are not what `vcc-lab report --record` makes");
    // What is changed by hand is made anew.
    for file in ["docs/results/vcc-fig11.md", "docs/results.md", "README.md"] {
        let text = fs::read_to_string(copy.join(file)).expect("UTF-8");
        let changed = text.replacen("0.982", "0.992", 1);
        assert_ne!(changed, text, "{file}");
        fs::write(copy.join(file), changed).expect("written");
        assert_eq!(report().well(), format!("recorded: {file}\n"));
        assert_eq!(fs::read_to_string(copy.join(file)).expect("UTF-8"), text);
    }
}

/// Of each claim the file with its figures says what the row says.
#[test]
fn evidence_is_what_its_files_have() {
    let page = fs::read_to_string(root().join("docs/evidence.md")).expect("UTF-8");
    let mut files = files(&root().join("results/data/evidence"), "txt");
    for row in page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| claim")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [_, command, passed, date] = cells[..] else { panic!("{row}") };
        let (word, rest) =
            passed.split_once("](../results/data/evidence/").unwrap_or_else(|| panic!("{row}"));
        let (name, decides) = rest.split_once(')').expect("the end of a link");
        let text = files.remove(name).unwrap_or_else(|| panic!("no file {name}, or a second row"));
        let word = word.trim_matches(['[', '*']);
        let head =
            format!("command: {}\ndate: {date}\npassed: {word}\n\n", command.trim_matches('`'));
        let figures = text.strip_prefix(&head).unwrap_or_else(|| panic!("{name}: not {head}"));
        let decides = decides.trim_start_matches(": ");
        assert!(figures.replace('\n', "; ").contains(decides), "{name}: {decides}");
        assert!(decides.len() < 110, "{name}: a short figure: {decides}");
    }
    assert!(files.is_empty(), "without a row: {:?}", files.keys());
}
