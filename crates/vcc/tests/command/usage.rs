use crate::vcc;

#[test]
fn help_names_the_commands() {
    let help = vcc("--help").well();
    for command in ["doctor", "attach", "detach", "flows", "ports", "lab", "bench"] {
        assert!(help.contains(&format!("\n  {command} ")), "{command} in {help}");
    }
}

#[test]
fn without_a_command() {
    assert_eq!(vcc("").complaint(2), "which command? `vcc --help` lists them");
}

#[test]
fn an_unknown_underlay_names_the_known() {
    let complaint = vcc("attach eth0 --underlay cubic").complaint(2);
    assert!(complaint.contains("'cubic'"), "{complaint}");
    for known in ["reno-ecn", "reno", "transparent"] {
        assert!(complaint.contains(known), "{complaint}");
    }
}

#[test]
fn values_out_of_range() {
    for (arguments, expected) in [
        ("attach", "<DEV>"),
        ("attach eth0 --window-max 1K", "64K to 1G"),
        ("attach eth0 --window-max lots", "a size is a number"),
        ("attach eth0 --max-flows 0", "0 is not in 1..=16777216"),
        ("detach", "<DEV>"),
        ("detach eth0 --all", "cannot be used with"),
        ("detach eth0 --timeout 5", "--wait"),
        ("lab run vcc-fig11 --stack vegas", "'vegas'"),
        ("lab run vcc-fig11 --runs 0", "0 is not in"),
        ("bench datapath --repeat 0", "0 is not in"),
        ("flows --jsno", "--jsno"),
    ] {
        let complaint = vcc(arguments).complaint(2);
        assert!(complaint.contains(expected), "{arguments}: {complaint}");
    }
}

#[test]
fn the_lab_lists_its_experiments() {
    let list = vcc("lab list").well();
    assert!(list.lines().any(|line| line.starts_with("vcc-fig11 ")), "{list}");
}

#[test]
fn the_lab_names_what_it_does_not_have() {
    let complaint = vcc("lab run vcc-fig99").complaint(1);
    assert!(complaint.contains("'vcc-fig99'"), "{complaint}");
    let complaint = vcc("lab run vcc-fig11 --json /nowhere/at/all.json").complaint(1);
    assert!(complaint.contains("there is no directory /nowhere/at"), "{complaint}");
}
