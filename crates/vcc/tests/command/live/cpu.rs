//! The virtual machine's CPU, as the host sees it.

use std::process::Command;

use serde_json::Value;
use vcc_qemu::Vm;
use vcc_testing::{eventually, ip};

use super::{Domain, at, boot, on_a_host_with_a_tap, run};
use crate::{CommandOutput, command, vcc};

fn port(printed: CommandOutput) -> Value {
    first(printed.well().as_bytes())
}

fn first(ports: &[u8]) -> Value {
    let ports: Value = serde_json::from_slice(ports).expect("JSON");
    ports[0].clone()
}

/// QEMU's process has the tap open. Computing is distinguished from sleep.
#[test]
fn the_cpu_of_a_machine_that_owns_the_tap_is_seen() {
    on_a_host_with_a_tap(|image| {
        vcc("attach tap0 --mode shadow").well();
        let read = || port(vcc("ports --json"));
        assert!(read()["cpu_idle"].is_null(), "nobody has the tap open");
        let netdev =
            ["-netdev".to_owned(), "tap,id=net,ifname=tap0,script=no,downscript=no".to_owned()];
        let mut vm = Vm::boot(image, &netdev, |_| ()).expect("a guest");
        let port = read();
        assert_eq!(port["machine"], "guest", "{port}");
        let share = |port: &Value, key: &str| port[key].as_f64().expect("a share");
        let sum: f64 =
            ["cpu_waiting", "cpu_running", "cpu_idle"].map(|key| share(&port, key)).iter().sum();
        assert!((sum - 1.0).abs() < 1e-9, "{port}");
        eventually("it sleeps", || share(&read(), "cpu_idle") > 0.5);
        run(&mut vm, "(while :; do :; done &)");
        eventually("it computes", || share(&read(), "cpu_idle") < 0.5);
        let printed = vcc("ports").well();
        assert!(printed.contains("the CPU of guest waits for "), "{printed}");
        assert_unseen_without_rights();
        drop(vm);
        assert!(read()["cpu_idle"].is_null(), "it has ended");
        ip("link delete tap0");
    });
}

/// Descriptors of a process that may do more than the command are none of its business.
fn assert_unseen_without_rights() {
    let mut setpriv = Command::new("setpriv");
    setpriv.args(["--bounding-set", "-sys_ptrace"]).arg(command().get_program());
    let output = setpriv.args(["ports", "--json"]).output().expect("setpriv");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(stderr.matches("cannot read whether guests wait for a CPU").count(), 1, "{stderr}");
    assert!(stderr.contains("root, or CAP_SYS_PTRACE"), "{stderr}");
    assert!(first(&output.stdout)["cpu_idle"].is_null());
}

/// QEMU's process is at the other end of the socket.
#[test]
fn the_cpu_of_a_machine_behind_a_socket_is_seen() {
    on_a_host_with_a_tap(|image| {
        let directory = tempfile::tempdir().expect("a directory");
        let socket = directory.path().join("socket");
        let _domain = Domain::start(&socket, "");
        let read =
            || port(at(&socket).args(["ports", "--json"]).output().expect("the command").into());
        assert!(read()["cpu_idle"].is_null(), "nobody is at the other end");
        let vm = boot(image, &socket);
        let port = read();
        assert_eq!(
            (&port["machine"], port["cpu_idle"].is_f64()),
            (&"guest".into(), true),
            "{port}"
        );
        drop(vm);
        eventually("it has gone", || read()["cpu_idle"].is_null());
    });
}
