use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use crate::{Said, command, vcc};

#[test]
fn help_names_the_commands() {
    let help = vcc("--help").well();
    for command in [
        "doctor", "attach", "detach", "flows", "guests", "top", "ports", "trace", "emit", "policy",
        "explain", "lab", "bench", "run", "status",
    ] {
        assert!(help.contains(&format!("\n  {command} ")), "{command} in {help}");
    }
}

#[test]
fn without_a_command() {
    assert_eq!(vcc("").complaint(2), "no command given: `vcc --help` lists them");
}

/// Whose reader has gone.
fn closed() -> OwnedFd {
    UnixStream::pair().expect("a connection").0.into()
}

#[test]
fn a_reader_that_has_gone_is_no_failure() {
    let mut list = command();
    let said = Said::from(list.args(["lab", "list"]).stdout(closed()).output().expect("run"));
    assert_eq!((said.code, said.stderr.as_str()), (0, ""));
    // Nor does it change what a complaint is.
    let check = ["policy", "check", "/nowhere/policy.toml"];
    let said = Said::from(command().args(check).stderr(closed()).output().expect("run"));
    assert_eq!(said.code, 1);
}

#[test]
fn what_cannot_be_written_is_a_failure() {
    for arguments in [["lab", "list"], ["lab", "--help"]] {
        let full = File::options().write(true).open("/dev/full").expect("a device");
        let said = Said::from(command().args(arguments).stdout(full).output().expect("run"));
        let complaint = said.complaint(1);
        assert!(complaint.starts_with("cannot write to stdout: No space left"), "{complaint}");
    }
}

#[test]
fn an_unknown_underlay_names_the_known() {
    let complaint = vcc("attach nowhere0 --underlay vegas").complaint(2);
    assert!(complaint.contains("'vegas'"), "{complaint}");
    for known in ["reno-ecn", "reno", "transparent"] {
        assert!(complaint.contains(known), "{complaint}");
    }
}

#[test]
fn values_out_of_range() {
    for (arguments, expected) in [
        ("attach", "<DEV>"),
        ("attach nowhere0 --window-max 1K", "64K to 1G"),
        ("attach nowhere0 --window-max lots", "a size is a number"),
        ("attach nowhere0 --max-flows 0", "0 is not in 1..=16777216"),
        ("attach nowhere0 --cap 0", "more than 0"),
        ("attach nowhere0 --cap-rate fast", "a rate is a number of bits a second"),
        ("attach nowhere0 --cap-rate 1K", "8K to"),
        ("attach nowhere0 --floor 0", "0 is not in"),
        ("attach nowhere0 --floor 100 --cap 50K", "--floor wins over --cap"),
        ("attach nowhere0 --emit-after 5", "--emit"),
        ("attach nowhere0 --emit --emit-after 0", "0 is not in"),
        ("attach nowhere0 --shadow --police", "cannot be used with"),
        ("attach nowhere0 --shadow --emit", "cannot be used with"),
        ("attach nowhere0 --underlay dctcp-priority --beta 2", "a number from 0 to 1"),
        ("attach nowhere0 --beta 0.5", "`--underlay dctcp-priority`; reno-ecn knows no priorities"),
        ("attach nowhere0 --underlay dctcp --beta 0.5", "dctcp knows no priorities"),
        ("detach", "<DEV>"),
        ("detach nowhere0 --all", "cannot be used with"),
        ("detach nowhere0 --timeout 5", "--wait"),
        ("lab run vcc-fig11 --stack vegas", "'vegas'"),
        ("lab run vcc-fig11 --runs 0", "0 is not in"),
        ("bench datapath --repeat 0", "0 is not in"),
        ("bench virtual --load nothing", "there are flow-1500, flow-9000"),
        ("flows --jsno", "--jsno"),
        ("trace", "<FLOW>"),
        ("trace 80", "'80' is not an end of a connection"),
        ("trace :80 --count 0", "0 is not in"),
        ("policy check", "<FILE>"),
        ("explain 192.0.2.1 192.0.2.2:2 --file p.toml", "invalid socket address syntax"),
        ("explain 192.0.2.1:1 192.0.2.2:2 --file p.toml --vlan 4095", "4095 is not in 0..=4094"),
        ("trace :80 --duration 0", "a number of seconds"),
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
