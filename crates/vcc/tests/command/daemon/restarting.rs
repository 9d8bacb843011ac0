//! The daemon ends, however, and another takes over.

use std::process::Command;

use serde_json::Value;
use vcc_port::{Port, counters};
use vcc_testing::{guest, ip, on_a_host};

use super::{POLICY, Place};
use crate::wire::{connect, exchange};
use crate::{CommandOutput, command, vcc};

#[test]
fn killed_during_a_transfer_and_adopted() {
    on_a_host(|| {
        let place = Place::new("killed", POLICY);
        let guest = guest();
        let mut daemon = place.run();
        daemon.is_ready();
        let (mut one, mut other) = connect(&guest);
        std::thread::scope(|scope| {
            let transfer = scope.spawn(|| {
                for _ in 0..50 {
                    exchange(&mut one, &mut other);
                }
            });
            for _ in 0..2 {
                daemon.kill();
                assert_eq!(Port::open("port").expect("open").flows().expect("flows").len(), 1);
                daemon = place.run();
                daemon.wait_for_log("port: adopted");
                daemon.is_ready();
            }
            transfer.join().expect("a transfer");
        });
        assert_eq!(place.ports(), [("port".to_owned(), 0)]);
        let port = Port::open("port").expect("open");
        let flow = &port.flows().expect("flows")[0];
        assert_eq!(flow.state.epoch, 3, "judged by each daemon");
        assert_eq!(port.counters().expect("counters").get(counters::UNKNOWN), 0);

        daemon.signal(libc::SIGTERM);
        daemon.wait_for_log("everything stays attached");
        assert_eq!(daemon.end(), 0);
        exchange(&mut one, &mut other);
        assert_eq!(Port::list().expect("a list").len(), 1);
        let complaint = place.vcc("status").complaint(1);
        assert!(complaint.starts_with("no daemon listens"), "{complaint}");
        assert!(vcc("detach --all").well().contains("draining"));
        drop((one, other));
        vcc("detach --all --wait").well();
        assert!(Port::list().expect("a list").is_empty());
    });
}

#[test]
fn devices_changed_meanwhile() {
    on_a_host(|| {
        let place = Place::new("meanwhile", POLICY);
        for name in ["1", "2", "3"] {
            ip(&format!("link add port{name} type veth peer name guest{name}"));
        }
        let mut daemon = place.run();
        daemon.is_ready();
        daemon.kill();
        ip("link delete port1");
        ip("link set port2 name port7");
        ip("link set port3 name other");
        let daemon = place.run();
        daemon.wait_for_log("port1 is gone: removed its pinned maps");
        daemon.is_ready();
        daemon.wait_for_log("other: drained and detached");
        assert_eq!(place.ports(), [("port7".to_owned(), 1)]);
    });
}

#[test]
fn a_bad_policy_touches_nothing() {
    on_a_host(|| {
        let place =
            Place::new("bad", "[[rules]]\nname = \"x\"\nunderlay = \"dtcp\"\nvlan = 5000\n");
        let printed = place.vcc("run --config FILE");
        assert_eq!((printed.code, printed.stdout.as_str()), (1, ""));
        assert!(printed.stderr.contains("policy.toml:3:12: error: `dtcp`"), "{}", printed.stderr);
        assert!(
            printed.stderr.contains("policy.toml:4:8: error: must be a VLAN"),
            "{}",
            printed.stderr
        );
        assert!(printed.stderr.ends_with("is invalid: 2 errors\n"), "{}", printed.stderr);
        assert!(!place.socket().exists());
        assert!(!std::path::Path::new("/sys/fs/bpf/vcc").exists());
    });
}

/// Runs a command with the capabilities that packaging/vcc.service grants.
pub(super) fn bounded(command: &Command) -> Command {
    let mut bounded = Command::new("setpriv");
    bounded
        .args(["--no-new-privs", "--bounding-set=-all,+bpf,+net_admin,+net_raw,+perfmon"])
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => bounded.env(name, value),
            None => bounded.env_remove(name),
        };
    }
    bounded
}

#[test]
fn the_doctor_finds_nothing_missing_with_them() {
    on_a_host(|| {
        let mounted = Command::new("mount").args(["-t", "bpf", "bpf", "/sys/fs/bpf"]).status();
        assert!(mounted.expect("mount").success());
        let mut doctor = command();
        doctor.args(["doctor", "--json"]);
        let printed: CommandOutput = bounded(&doctor).output().expect("the command").into();
        let checks: Value = serde_json::from_str(&printed.stdout).expect("JSON");
        let missing = checks.as_array().expect("checks").iter();
        let missing = missing.filter(|check| check["need"] == "attach" && check["ok"] != true);
        assert_eq!(missing.count(), 0, "{}", printed.stdout);
    });
}

#[test]
fn the_doctor_says_what_it_cannot_see_of_a_device_with_them() {
    on_a_host(|| {
        ip("link add port1 type veth peer name guest1");
        crate::vcc("attach port1").well();
        let mut doctor = command();
        doctor.args(["doctor", "--device", "port1"]);
        let printed = CommandOutput::from(bounded(&doctor).output().expect("the command")).well();
        // Without CAP_SYS_ADMIN, programs have no names; vcc's own are known by what is pinned.
        assert!(printed.contains("a program with the ID"), "{printed}");
        assert!(printed.contains("vcc is number 1 of 1"), "{printed}");
        assert!(printed.contains("It is unknown whether vcc sees all that passes."), "{printed}");
    });
}

/// The capabilities that packaging/vcc.service grants suffice.
#[test]
fn four_capabilities_are_enough() {
    on_a_host(|| {
        ip("link add port1 type veth peer name guest1");
        ip("link add other type veth peer name guest3");
        let mounted = Command::new("mount").args(["-t", "bpf", "bpf", "/sys/fs/bpf"]).status();
        assert!(mounted.expect("mount").success());
        let place = Place::new("capabilities", &format!("{POLICY}emit = true\n"));
        let daemon = place.run_by(bounded(&place.command()));
        daemon.is_ready();
        ip("link add port2 type veth peer name guest2");
        daemon.wait_for_log("port2: attached, port 1");
        ip("link delete port2");
        daemon.wait_for_log("port2 is gone, with 0 connection(s)");
        vcc("attach other").well();
        drop(daemon);

        // Nor does it take more to adopt, or to see what others have attached.
        let daemon = place.run_by(bounded(&place.command()));
        daemon.wait_for_log("<6>port1: adopted");
        ip("link set other name port3");
        daemon.wait_for_log("port3 is not a port: vcc is already attached");
        place.vcc("policy apply").well();
        assert!(place.vcc("emit port1").complaint(1).starts_with("another"));
    });
}
