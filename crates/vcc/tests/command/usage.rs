use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use crate::{CommandOutput, command, vcc};

#[test]
fn help_names_the_commands() {
    let help = vcc("--help").well();
    for command in [
        "doctor", "attach", "detach", "flows", "guests", "top", "ports", "read", "trace", "emit",
        "policy", "explain", "run", "status",
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
    let mut schema = command();
    let printed = CommandOutput::from(
        schema.args(["policy", "schema"]).stdout(closed()).output().expect("run"),
    );
    assert_eq!((printed.code, printed.stderr.as_str()), (0, ""));
    // Nor does it change what a complaint is.
    let check = ["policy", "check", "/nowhere/policy.toml"];
    let printed =
        CommandOutput::from(command().args(check).stderr(closed()).output().expect("run"));
    assert_eq!(printed.code, 1);
}

#[test]
fn what_cannot_be_written_is_a_failure() {
    for arguments in [["policy", "schema"], ["policy", "--help"]] {
        let full = File::options().write(true).open("/dev/full").expect("a device");
        let printed =
            CommandOutput::from(command().args(arguments).stdout(full).output().expect("run"));
        let complaint = printed.complaint(1);
        assert!(complaint.starts_with("cannot write to stdout: No space left"), "{complaint}");
    }
}

#[test]
fn an_unknown_underlay_names_the_known() {
    let complaint = vcc("attach nowhere0 --underlay westwood").complaint(2);
    assert!(complaint.contains("'westwood'"), "{complaint}");
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
        ("attach nowhere0 --max-flows 0", "a number from 1 to 16777216, not 0"),
        ("attach nowhere0 --window-cap 0", "must be 1 to 4294967295, not 0"),
        ("attach nowhere0 --rate-cap fast", "a rate is a number of bits per second"),
        ("attach nowhere0 --rate-cap 1K", "8K to"),
        ("attach nowhere0 --window-floor-segments 1001", "a number from 0 to 1000, not 1001"),
        (
            "attach nowhere0 --window-floor-segments 0",
            "--window-floor-segments 0 needs an underlay that has windows below one segment (dctcp, dctcp-priority, \
             swift), not reno-ecn",
        ),
        (
            "attach nowhere0 --window-floor-segments 100 --window-cap 50K",
            "--window-floor-segments 100, at least 53600 bytes, exceeds --window-cap 50K",
        ),
        ("attach nowhere0 --emit-after 5ms", "--emit-after has no effect without --emit"),
        ("attach nowhere0 --emit --emit-after 5", "a time is a number with a unit"),
        ("attach nowhere0 --emit --emit-after 0ms", "must be 1ms to 1min, not 0ms"),
        (
            "attach nowhere0 --mode shadow --police",
            "--police takes effect only with --mode enforce",
        ),
        ("attach nowhere0 --mode shadow --emit", "--emit takes effect only with --mode enforce"),
        ("attach nowhere0 --mode ignore --police", "--police has no effect"),
        ("attach nowhere0 --prr=no", "true or false"),
        ("attach nowhere0 --underlay transparent --police", "an underlay that controls the window"),
        ("attach nowhere0 --underlay dctcp-priority --priority 2", "a number from 0 to 1"),
        (
            "attach nowhere0 --priority 0.5",
            "--priority needs an underlay that knows priorities (dctcp-priority), not reno-ecn",
        ),
        ("attach nowhere0 --underlay dctcp --priority 0.5", "(dctcp-priority), not dctcp"),
        ("attach nowhere0 --pool gold", "--pool"),
        ("detach", "<DEV|--all>"),
        ("set nowhere0", "were not provided"),
        ("set nowhere0 --max-flows 9", "--max-flows"),
        ("detach nowhere0 --all", "cannot be used with"),
        ("detach nowhere0 --timeout 5", "--wait"),
        ("flows --jsno", "--jsno"),
        ("trace", "<FLOW>"),
        ("trace 80", "'80' is not an end of a connection"),
        ("trace :80 --count 0", "0 is not in"),
        ("policy check", "<FILE>"),
        ("explain 192.0.2.1 192.0.2.2:2 --file p.toml", "expected ADDRESS:PORT, such as"),
        ("explain 192.0.2.1:1 192.0.2.2:2 --file p.toml --vlan 4095", "4095 is not in 0..=4094"),
        ("trace :80 --duration 0", "a number of seconds"),
    ] {
        let complaint = vcc(arguments).complaint(2);
        assert!(complaint.contains(expected), "{arguments}: {complaint}");
    }
}

#[test]
fn former_options_are_refused_with_the_new_name() {
    for (former, now) in [
        ("--shadow", "--mode shadow"),
        ("--beta 0.5", "--priority"),
        ("--cap 50K", "--window-cap"),
        ("--cap-rate 1G", "--rate-cap"),
        ("--floor 2", "--window-floor-segments"),
        ("--override-guest-ecn", "--guest-ecn override"),
        ("--no-prr", "--prr=false"),
        ("--no-undo", "--undo=false"),
        ("--no-pace-push", "--pace-push=false"),
        ("--no-feedback", "--feedback=false"),
    ] {
        let complaint = vcc(&format!("attach {former} nowhere0")).complaint(2);
        let option = former.split(' ').next().expect("an option");
        assert_eq!(complaint, format!("{option} is now {now}"));
        let help = vcc("attach --help").well();
        assert!(!help.contains(&format!("{option} ")), "{option} in {help}");
    }
    assert_eq!(vcc("attach nowhere0 --beta=0.5").complaint(2), "--beta is now --priority");
    for unknown in ["attach --mod", "flows --beta"] {
        let complaint = vcc(unknown).complaint(2);
        assert!(complaint.starts_with("unexpected argument '--"), "{complaint}");
    }
}

#[test]
fn commands_of_the_lab_are_refused_with_their_new_names() {
    for (former, word, now) in [
        ("lab run acdc-fig15", "lab", "vcc-lab run acdc-fig15"),
        ("lab", "lab", "vcc-lab"),
        ("lab --help", "lab", "vcc-lab --help"),
        ("bench datapath --repeat 1", "bench", "vcc-lab bench datapath --repeat 1"),
    ] {
        let complaint = vcc(former).complaint(2);
        assert_eq!(complaint, format!("`vcc {word}` is now a command of its own: {now}"));
    }
    assert!(vcc("laboratory").complaint(2).contains("'laboratory'"));
}
