//! A virtual machine under the host's policy, which is read again by SIGHUP.

use std::fs;
use std::path::Path;

use serde_json::Value;
use vcc_testing::eventually;

use super::{CommandOutput, Domain, at, boot, from_guest, on_a_host_with_a_tap, to_guest};
use crate::vcc;

/// Rules for what the guest opens, and for what it accepts.
fn policy(rule: &str, treatment: &str) -> String {
    format!(
        "[[ports]]\nsocket = \"*/socket\"\ntenant = \"deep\"\nbuffer = \"1M\"\n\
         [[ports]]\ndevice = \"vnet*\"\n\
         [[rules]]\nname = \"{rule}\"\ntenant = \"deep\"\nrole = \"client\"\n{treatment}\n\
         [[rules]]\nname = \"accepted\"\ntenant = \"deep\"\nreceive = \"ring\"\n"
    )
}

/// The connection of the guest with this end of its peer or its own.
fn flow(socket: &Path, end: &str) -> Value {
    let printed: CommandOutput = at(socket)
        .args(["flows", "tap0", "--json", "--stage", "established"])
        .args(end.split(' '))
        .output()
        .expect("the command")
        .into();
    serde_json::from_str::<Value>(&printed.well()).expect("JSON")[0].clone()
}

fn comes_under(domain: &Domain, socket: &Path, rule: &str) {
    domain.signal(libc::SIGHUP);
    eventually("the policy is in force", || flow(socket, "--peer :5001")["rule"] == rule);
}

fn explained(socket: &Path, file: &str) {
    let connection = ["explain", "192.0.2.1:40000", "192.0.2.2:5001", "--device", "tap0"];
    let printed: CommandOutput =
        at(socket).args(connection).args(["--file", file]).output().expect("the command").into();
    let output = printed.well();
    assert!(output.starts_with("rule 1 `first` matches (tenant deep, role client)"), "{output}");
}

#[test]
fn connections_come_under_the_rules_of_a_policy_that_changes() {
    on_a_host_with_a_tap(|image| {
        let directory = tempfile::tempdir().expect("a directory");
        let socket = directory.path().join("socket");
        let file = directory.path().join("policy.toml");
        let write = |text: &str| fs::write(&file, text).expect("written");
        write(&policy("first", "act = \"hold\"\nretransmit = true"));
        let domain = Domain::start(&socket, &format!("--policy {}", file.display()));
        let mut vm = boot(image, &socket);
        from_guest(&mut vm, &mut || {
            let seen = flow(&socket, "--peer :5001");
            assert_eq!(seen["rule"], "first");
            assert!(seen["held_bytes"].is_u64() && seen["promised_bytes"].is_u64(), "{seen}");
            explained(&socket, file.to_str().expect("UTF-8"));
            write("[[ports]]\nsocket = 1\n");
            domain.signal(libc::SIGHUP);
            for (rule, treatment) in [
                ("second", "act = \"split\""),
                ("third", "act = \"window\""),
                ("fourth", "mode = \"ignore\""),
                ("fifth", "act = \"split\""),
            ] {
                write(&policy(rule, treatment));
                comes_under(&domain, &socket, rule);
            }
        });
        to_guest(&mut vm, &mut || {
            assert_eq!(flow(&socket, "--guest :5002")["rule"], "accepted");
        });
        let printed: CommandOutput =
            at(&socket).args(["ports", "--json"]).output().expect("a command").into();
        let ports: Value = serde_json::from_str(&printed.well()).expect("JSON");
        assert_eq!(
            (&ports[0]["mode"], &ports[0]["underlay"]),
            (&"by rule".into(), &"by rule".into())
        );
    });
}

#[test]
fn a_policy_without_the_port_is_refused_and_so_are_options_beside_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("policy.toml");
    fs::write(&file, policy("first", "act = \"hold\"")).expect("written");
    let started = |socket: &str, more: &str| {
        let file = file.display();
        vcc(&format!("domain --tap none0 --socket {socket} --policy {file} {more}"))
    };
    let complaint = started("/run/other", "").complaint(1);
    let expected = "has no [[ports]] with a `socket` that matches /run/other: add one";
    assert!(complaint.ends_with(expected), "{complaint}");
    for option in ["--act hold", "--underlay cubic", "--max-flows 5", "--buffer-kib 64"] {
        let complaint = started("/run/socket", option).complaint(2);
        assert!(complaint.contains("cannot be used with"), "{complaint}");
    }
}
