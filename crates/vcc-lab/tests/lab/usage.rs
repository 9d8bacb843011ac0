use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::{CommandOutput, command, lab};

#[test]
fn help_names_the_commands() {
    let help = lab("--help").well();
    for command in ["list", "run", "report", "renew", "bench"] {
        assert!(help.contains(&format!("\n  {command} ")), "{command} in {help}");
    }
    assert!(!help.contains("generate"), "{help}");
}

#[test]
fn without_a_command() {
    assert_eq!(lab("").complaint(2), "no command given: `vcc-lab --help` lists them");
}

#[test]
fn values_out_of_range() {
    for (arguments, expected) in [
        ("run vcc-fig11 --stack vegas", "'vegas'"),
        ("run vcc-fig11 --runs 0", "0 is not in"),
        ("renew --minutes 0", "0 is not in"),
        ("bench datapath --repeat 0", "0 is not in"),
        ("bench virtual --load nothing", "there are flow-1500, flow-9000"),
    ] {
        let complaint = lab(arguments).complaint(2);
        assert!(complaint.contains(expected), "{arguments}: {complaint}");
    }
}

#[test]
fn the_lab_lists_its_experiments() {
    let list = list_at(tempfile::tempdir().expect("a directory").path());
    for (id, rest) in [
        ("vcc-fig11", "at least 12 min  live, virtual  One legacy guest among nine"),
        ("vcc-fig11-1g", "virtual  virtual, live "),
        ("acdc-fig19", "virtual  virtual  "),
        ("peers-bulk", " min  live  "),
        ("live-domain", " min  live  "),
    ] {
        let row = row(&list, id);
        assert!(row.contains(rest), "{rest} in {row}");
    }
    let help = lab("list --help").well();
    assert!(help.contains("TIME is") && help.contains("BACKENDS are"), "{help}");
}

#[test]
fn a_list_shows_what_recorded_runs_took() {
    let root = tempfile::tempdir().expect("a directory");
    let data = root.path().join("results/data");
    fs::create_dir_all(&data).expect("a directory");
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/data/acdc-fig19.json");
    let mut record: Value =
        serde_json::from_slice(&fs::read(recorded).expect("a record")).expect("JSON");
    record["wall_s"] = 1500.into();
    fs::write(data.join("acdc-fig19.json"), record.to_string()).expect("written");
    let list = list_at(root.path());
    assert!(row(&list, "acdc-fig19").contains(" 25 min  virtual  "), "{list}");
    record["backend"] = "live".into();
    fs::write(data.join("acdc-fig19.json"), record.to_string()).expect("written");
    assert!(!list_at(root.path()).contains(" 25 min "), "of another backend");
    fs::write(data.join("acdc-fig19.json"), "{").expect("written");
    let listed = command().current_dir(root.path()).arg("list").output().expect("the command");
    let complaint = String::from_utf8_lossy(&listed.stderr);
    assert!(complaint.contains("times of recorded runs are left out"), "{complaint}");
    assert!(listed.status.success() && !listed.stdout.is_empty());
}

fn list_at(directory: &Path) -> String {
    let listed = command().current_dir(directory).arg("list").output().expect("the command");
    CommandOutput::from(listed).well()
}

/// That of an experiment.
fn row<'a>(list: &'a str, id: &str) -> &'a str {
    let is_its = |line: &&str| line.split_whitespace().next() == Some(id);
    list.lines().find(is_its).expect("a row")
}

#[test]
fn the_lab_names_what_it_does_not_have() {
    let complaint = lab("run vcc-fig99").complaint(1);
    assert!(complaint.contains("'vcc-fig99'"), "{complaint}");
    let complaint = lab("run vcc-fig11 --json /nowhere/at/all.json").complaint(1);
    assert!(complaint.contains("there is no directory /nowhere/at"), "{complaint}");
}

#[test]
fn every_command_has_a_page_and_is_completed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    for what in ["man", "completions"] {
        assert_eq!(lab(&format!("generate {what} {}", path.display())).well(), "");
    }
    let names = fs::read_dir(path).expect("a directory").map(|entry| entry.expect("an entry"));
    let names: Vec<_> =
        names.map(|entry| entry.file_name().into_string().expect("UTF-8")).collect();
    for page in
        ["", "-list", "-run", "-report", "-renew", "-bench", "-bench-datapath", "-bench-virtual"]
    {
        assert!(names.contains(&format!("vcc-lab{page}.8")), "{page}: {names:?}");
    }
    for completions in ["_vcc-lab", "vcc-lab.bash", "vcc-lab.fish"] {
        let text = fs::read_to_string(path.join(completions)).expect("a script");
        assert!(text.contains("report") && !text.contains("generate"), "{completions}");
    }
}
