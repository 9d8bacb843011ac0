//! Obstacles to the daemon, by mistake or on purpose.

use std::ffi::{CString, OsStr};
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{chown, symlink};
use std::process::Command;
use std::thread;
use std::time::Duration;

use vcc_testing::{eventually, ip, on_a_host};

use super::asking::answer;
use super::{POLICY, Place};
use crate::{CommandOutput, vcc};

/// Not UTF-8, and red where a terminal obeys it.
const NOT_UTF8: &[u8] = b"port\xff";
const RED: &str = "port\x1b[31m";

/// `ip` with a device's name that is no words.
fn ip_with(before: &str, device: &OsStr, behind: &str) {
    let mut ip = Command::new("ip");
    ip.args(before.split_whitespace()).arg(device).args(behind.split_whitespace());
    assert!(ip.status().expect("ip").success());
}

/// Runs a command, and kills it if it does not end within 60 s.
fn in_time(place: &Place, arguments: &str) -> CommandOutput {
    let vcc = place.command();
    let mut timeout = Command::new("timeout");
    let arguments = arguments.replace("FILE", place.config().to_str().expect("UTF-8"));
    timeout.arg("60").arg(vcc.get_program()).args(arguments.split_whitespace());
    for (name, value) in vcc.get_envs() {
        timeout.env(name, value.unwrap_or_default());
    }
    timeout.output().expect("timeout").into()
}

#[test]
fn a_daemon_that_was_stopped_is_not_waited_for() {
    on_a_host(|| {
        let place = Place::new("stopped", POLICY);
        let daemon = place.run();
        daemon.is_ready();
        daemon.signal(libc::SIGSTOP);
        for command in ["status", "policy apply", "policy show"] {
            let complaint = in_time(&place, command).complaint(1);
            assert!(complaint.contains("has not answered for 5 s"), "{command}: {complaint}");
        }
        daemon.signal(libc::SIGCONT);
        eventually("it answers", || place.vcc("status").code == 0);
    });
}

#[test]
fn a_daemon_that_has_more_to_do_is_waited_for() {
    on_a_host(|| {
        let place = Place::new("busy", POLICY);
        let daemon = place.run();
        daemon.is_ready();
        // A process that attaches holds this lock.
        let pinned = File::open("/sys/fs/bpf/vcc").expect("a directory");
        // SAFETY: the call takes no pointers, and the descriptor is open.
        assert_eq!(unsafe { libc::flock(pinned.as_raw_fd(), libc::LOCK_EX) }, 0);
        let release = thread::spawn(move || {
            // This is longer than the client waits for a silent daemon.
            thread::sleep(Duration::from_secs(8));
            drop(pinned);
        });
        let printed = place.vcc("policy apply").well();
        assert!(printed.contains("is in force: epoch 2"), "{printed}");
        release.join().expect("released");
    });
}

#[test]
fn a_policy_that_is_a_pipe_hinders_nothing() {
    on_a_host(|| {
        let place = Place::new("pipe", POLICY);
        let daemon = place.run();
        daemon.is_ready();
        fs::remove_file(place.config()).expect("removed");
        let path = CString::new(place.config().as_os_str().as_bytes()).expect("a path");
        // SAFETY: the path ends in NUL and outlives the call.
        assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
        daemon.signal(libc::SIGHUP);
        let printed = daemon.wait_for_log("the previous policy stays in force");
        assert!(printed.contains("not a regular file"), "{printed}");
        let complaint = in_time(&place, "policy apply").complaint(1);
        assert!(complaint.contains("not a regular file"), "{complaint}");
        daemon.signal(libc::SIGTERM);
        assert_eq!(daemon.end(), 0);
        let complaint = in_time(&place, "run --config FILE").complaint(1);
        assert!(complaint.contains("not a regular file"), "{complaint}");
    });
}

#[test]
fn a_policy_from_a_pipe_can_be_tried() {
    on_a_host(|| {
        let place = Place::new("from-pipe", POLICY);
        let daemon = place.run();
        daemon.is_ready();
        let script = "cat \"$2\" | \"$1\" policy apply /dev/stdin";
        let vcc = place.command();
        let mut shell = Command::new("sh");
        shell.args(["-c", script, "sh"]).arg(vcc.get_program()).arg(place.config());
        shell.env("RUNTIME_DIRECTORY", place.path("run"));
        let printed: CommandOutput = shell.output().expect("a shell").into();
        assert!(printed.well().starts_with("/dev/stdin is in force until the next reload"));
    });
}

#[test]
fn a_name_that_is_not_utf8_is_reported() {
    on_a_host(|| {
        let place = Place::new("no-text", POLICY);
        let odd = OsStr::from_bytes(NOT_UTF8);
        ip_with("link add", odd, "type veth peer name guest1");
        let daemon = place.run();
        let printed = daemon.wait_for_log("is not a port: its name is not UTF-8");
        daemon.is_ready();
        assert!(printed.contains("<4>port\u{fffd} is not a port"), "{printed}");
        let problems = place.status()["problems"].clone();
        let problem = problems[0].as_str().expect("a problem");
        let (_, rename) = problem.split_once("(`ip ").expect("what to do");
        let (rename, _) = rename.split_once("NAME`)").expect("what to do");
        ip(&format!("{rename} port1"));
        daemon.wait_for_log("port1: attached, port 0");
        assert_eq!(place.status()["problems"].as_array().expect("problems").len(), 0);
        // A port that is renamed to one.
        ip_with("link set port1 name", odd, "");
        daemon.wait_for_log("port1 was renamed to port\u{fffd}, which is not UTF-8");
        let printed = place.vcc("status").well();
        assert!(
            printed.contains("problem: port1 was renamed to a name that is not UTF-8"),
            "{printed}"
        );
        ip_with("link set", odd, "name port2");
        daemon.wait_for_log("port2 was renamed; its name was port1");
        assert_eq!(place.ports(), [("port2".to_owned(), 0)]);
        assert_eq!(place.status()["problems"].as_array().expect("problems").len(), 0);
    });
}

/// All messages about it go to terminals, which must not obey control characters in names.
#[test]
fn no_name_is_obeyed_by_a_terminal() {
    const ESCAPED: &str = "port\\u001b[31m";
    on_a_host(|| {
        let place = Place::new("red\x1b[2J", POLICY);
        ip_with("link add", OsStr::new(RED), "type veth peer name guest1");
        ip_with("tuntap add mode tun name", OsStr::new("port\u{9b}2J"), "");
        let daemon = place.run();
        assert!(daemon.wait_for_log("attached, port 0").contains(&format!("{ESCAPED}: attached")));
        assert!(daemon.is_ready().contains("red\\u001b[2J"));
        let config = place.config();
        for (words, expected) in [
            (&["status"][..], ESCAPED),
            (&["status"], "port\\u009b2J is not a port"),
            (&["status", "--json"], ESCAPED),
            (&["ports"], ESCAPED),
            (&["ports", "--json"], ESCAPED),
            (&["policy", "apply"], "red\\u001b[2J"),
            (&["policy", "apply", "/nowhere\x1b[2J"], "cannot read /nowhere\\u001b[2J"),
            (&["policy", "check", config.to_str().expect("UTF-8")], "red\\u001b[2J"),
            (
                &["explain", "1.1.1.1:1", "1.1.1.2:2", "--device", "\x1b[2J"],
                "`\\u001b[2J` is no port",
            ),
            (&["flows", "--sort", "\u{9b}2J"], "\\u009b2J"),
            (&["\u{9b}2J"], "\\u009b2J"),
            (&["attach", "\x1b[2J"], "no network device `\\u001b[2J`"),
            (&["detach", "--now", RED], ESCAPED),
            (&["attach", RED], &format!("attached to {ESCAPED}")),
            (&["detach", "--all"], &format!("detached from {ESCAPED}")),
        ] {
            let output = place.command().args(words).output().expect("the command");
            let printed =
                String::from_utf8([output.stdout, output.stderr].concat()).expect("UTF-8");
            let is_obeyed = |c: char| c.is_control() && c != '\n';
            assert!(!printed.contains(is_obeyed), "{words:?}: {printed:?}");
            assert!(printed.contains(expected), "{words:?}: {printed:?}");
        }
    });
}

#[test]
fn a_directory_of_somebody_else_is_not_used() {
    on_a_host(|| {
        let place = Place::new("foreign", POLICY);
        let run = place.path("run");
        chown(&run, Some(12_345), None).expect("given away");
        let complaint = in_time(&place, "run --config FILE").complaint(1);
        assert!(complaint.contains("/run: it belongs to user 12345"), "{complaint}");
        fs::remove_dir(&run).expect("removed");
        let elsewhere = place.path("elsewhere");
        fs::create_dir(&elsewhere).expect("a directory");
        symlink(&elsewhere, &run).expect("a link");
        let complaint = in_time(&place, "run --config FILE").complaint(1);
        assert!(complaint.contains("/run: it is a symbolic link"), "{complaint}");
        assert_eq!(fs::read_dir(&elsewhere).expect("a directory").count(), 0);
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &fs::metadata(&elsewhere).expect("there").permissions(),
        );
        assert_ne!(mode & 0o777, 0o750, "it is as it was");
    });
}

#[test]
fn what_is_too_long_is_not_repeated() {
    on_a_host(|| {
        let place = Place::new("long", POLICY);
        let daemon = place.run();
        daemon.is_ready();
        let long = "x".repeat(3_000_000);
        for (request, expected) in [
            (format!("{{\"request\":\"{long}\"}}"), "unknown request"),
            (format!("{{\"request\":\"apply\",\"{long}\":1}}"), "unknown request"),
            (
                format!(
                    "{{\"request\":\"apply\",\"policy\":{{\"text\":\"\",\"file_name\":\"{long}\"}}}}"
                ),
                "file_name is longer than 4096 bytes",
            ),
        ] {
            let mut stream = place.connect();
            stream.write_all(request.as_bytes()).expect("sent");
            stream.write_all(b"\n").expect("sent");
            let printed = answer(stream);
            assert!(printed.len() < 300, "{} bytes", printed.len());
            assert!(printed.contains(expected), "{printed}");
        }
    });
}

#[test]
fn a_broken_policy_costs_little_memory() {
    on_a_host(|| {
        let place = Place::new("broken", POLICY);
        let daemon = place.run();
        daemon.is_ready();
        // Brackets: JSON escapes none of them.
        place.write(&"]".repeat(3_900_000));
        let printed = place.vcc("policy apply FILE");
        assert_eq!((printed.code, printed.stdout.as_str()), (1, ""));
        assert!(printed.stderr.contains("policy.toml:1:500001: error: the file is too long"));
        let most_kib = vcc_testing::process_status(daemon.child.id(), "VmHWM");
        assert!(most_kib < 150 << 10, "{most_kib} KiB");
    });
}

#[test]
fn a_default_is_reported_besides_the_rules() {
    on_a_host(|| {
        let place = Place::new("default", POLICY);
        let daemon = place.run();
        assert!(daemon.is_ready().contains("0 rules and a default, epoch 1"));
        assert!(place.vcc("status").well().contains(", epoch 1, 0 rules and a default\n"));
        place.write("[[ports]]\ndevice = \"x\"\n[[rules]]\nname = \"x\"\n");
        assert!(
            place.vcc("policy apply").well().contains("epoch 2, 1 rule, no default at 0 ports")
        );
        assert!(place.vcc("status").well().contains(", epoch 2, 1 rule, no default\n"));
    });
}

/// Nobody else has to be asked for what is under a lock.
#[test]
fn the_process_that_holds_the_lock_is_reported() {
    on_a_host(|| {
        ip("link add port type veth peer name guest");
        vcc("attach port").well();
        let pinned = File::open("/sys/fs/bpf/vcc").expect("a directory");
        // SAFETY: the call takes no pointers, and the descriptor is open.
        assert_eq!(unsafe { libc::flock(pinned.as_raw_fd(), libc::LOCK_EX) }, 0);
        let place = Place::new("locked", POLICY);
        let complaint = in_time(&place, "detach port").complaint(1);
        assert!(
            complaint.contains("lock /sys/fs/bpf/vcc: another process has held it"),
            "{complaint}"
        );
    });
}
