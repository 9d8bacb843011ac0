use std::fs;

use crate::lab;

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
    let list = lab("list").well();
    assert!(list.lines().any(|line| line.starts_with("vcc-fig11 ")), "{list}");
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
