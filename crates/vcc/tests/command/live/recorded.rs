//! `vcc trace` and `vcc guests` at ports of `vcc domain`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::Value;
use vcc_testing::{ip, on_a_host};

use super::{CommandOutput, Domain, at};
use crate::pty::Pty;

fn vcc(socket: &Path, arguments: &str) -> CommandOutput {
    at(socket).args(arguments.split_whitespace()).output().expect("the command").into()
}

/// The ACKs of its connection to `peer_port`, which sends. Its guest is seen under `act = "hold"`.
pub fn assert_recorded(socket: &Path, peer_port: u16) {
    let csv = vcc(socket, &format!("trace :{peer_port} --count 5")).well();
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let [header, acks @ ..] = &lines[..] else { panic!("no header") };
    assert_eq!(acks.len(), 5, "{csv}");
    let column = |name| header.iter().position(|it| *it == name).expect("a column");
    let acked = |ack: &[&str]| ack[column("acked_bytes")].parse::<u64>().expect("a number");
    assert!(acked(&acks[4]) > 0 && acks.is_sorted_by_key(|ack| acked(ack)), "{csv}");
    let drawn = socket.with_extension("svg");
    let plot = format!("trace :{peer_port} --count 5 --plot {}", drawn.display());
    assert!(vcc(socket, &plot).well().starts_with("5 ACKs drawn"));

    let mut live = at(socket);
    live.args(["trace", &format!(":{peer_port}"), "--live"]);
    let mut live = Pty::start(live, (120, 24));
    let text = live.eventually("its limit", |text| text.contains("limited by "));
    assert!(text.contains(&format!("192.0.2.2:{peer_port} at tap0")), "{text}");
    live.press("q");
    assert_eq!(live.end(), 0);

    let json = vcc(socket, "guests tap0 --seconds 0.5 --json").well();
    let guests: Vec<Value> = serde_json::from_str(&json).expect("an array");
    let [guest] = &guests[..] else { panic!("{json}") };
    assert_eq!((&guest["port"], &guest["guest"]), (&"tap0".into(), &"192.0.2.1".into()));
    assert_eq!((&guest["overlay"], &guest["ecn"][0]), (&"unknown".into(), &"none".into()));
    let why = guest["reasons"][0].as_str().expect("a reason");
    assert!(why.contains("`act = \"hold\"`") && why.contains("`mode = \"shadow\"`"), "{json}");
}

/// `vcc trace`, from when it records.
fn begin_trace(socket: &Path) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut trace = at(socket);
    trace.args(["trace", "--device", "tap0"]).stdout(Stdio::piped());
    let mut child = trace.spawn().expect("the command");
    let mut lines = BufReader::new(child.stdout.take().expect("its output"));
    let mut header = String::new();
    lines.read_line(&mut header).expect("a header");
    assert!(header.starts_with("time_s,"), "{header}");
    (child, lines)
}

#[test]
fn a_port_has_one_recording_which_ends_with_its_process() {
    on_a_host(|| {
        ip("tuntap add dev tap0 mode tap");
        let directory = tempfile::tempdir().expect("a directory");
        let socket = directory.path().join("socket");
        let mut domain = Domain::start(&socket, "");
        let (mut trace, _lines) = begin_trace(&socket);
        let complaint = vcc(&socket, "trace --device tap0").complaint(1);
        assert!(complaint.contains("another `vcc trace` is running at `tap0`"), "{complaint}");
        let guests = vcc(&socket, "guests --seconds 0.1 --json").well();
        assert_eq!(guests.trim_end(), "[]", "the flow table is read instead");
        trace.kill().expect("killed");
        trace.wait().expect("its end");
        let (mut trace, _lines) = begin_trace(&socket);
        domain.stop();
        assert!(trace.wait().expect("its end").success());
        let complaint = vcc(&socket, "trace --device tap0").complaint(1);
        assert!(complaint.contains("vcc is not attached to `tap0`"), "{complaint}");
    });
}

#[test]
fn commands_for_ports_in_the_kernel_say_so() {
    on_a_host(|| {
        ip("tuntap add dev tap0 mode tap");
        let directory = tempfile::tempdir().expect("a directory");
        let socket = directory.path().join("socket");
        let _domain = Domain::start(&socket, "");
        for (command, instead) in
            [("detach tap0", "end its process"), ("emit tap0", "its process sends by itself")]
        {
            let complaint = vcc(&socket, command).complaint(1);
            let expected = "`tap0` is a port of `vcc domain`, not one in the kernel: ";
            assert_eq!(complaint, format!("{expected}{instead}"));
        }
    });
}
