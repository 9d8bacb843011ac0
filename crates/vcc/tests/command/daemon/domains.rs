//! Ports of `vcc domain` under the daemon's file.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use vcc_testing::{eventually, guest, ip, on_a_host};

use super::{POLICY, Place};
use crate::CommandOutput;
use crate::wire::connect;

struct Domain {
    child: Child,
    lines: BufReader<ChildStdout>,
    complaints: BufReader<ChildStderr>,
}

impl Domain {
    fn start(place: &Place) -> Self {
        Self::start_with(place, &place.config())
    }

    fn start_with(place: &Place, policy: &Path) -> Self {
        let mut command = place.command();
        command.args(["domain", "--tap", "tap0", "--socket"]).arg(place.path("card"));
        Self::spawn(command.arg("--policy").arg(policy))
    }

    fn in_front_of(device: &str, place: &Place) -> Self {
        let mut command = place.command();
        Self::spawn(command.args(["domain", "--device", device, "--policy"]).arg(place.config()))
    }

    fn spawn(command: &mut Command) -> Self {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command");
        let lines = BufReader::new(child.stdout.take().expect("its output"));
        let complaints = BufReader::new(child.stderr.take().expect("its complaints"));
        Self { child, lines, complaints }
    }

    /// Reads its policy again, as by `systemctl reload`.
    fn hang_up(&self) {
        // SAFETY: the call takes no pointers, and the process has not been waited for.
        unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGHUP) };
    }

    /// Its complaints up to one with these words.
    fn wait_for_error(&mut self, words: &str) -> String {
        let mut complaints = String::new();
        while !complaints.contains(words) {
            let length = self.complaints.read_line(&mut complaints).expect("a line");
            assert!(length > 0, "it has ended: {complaints}");
        }
        complaints
    }

    fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("a line");
        line
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_policy_that_is_applied_reaches_them() {
    on_a_host(|| {
        ip("tuntap add dev tap0 mode tap");
        let sockets = "[[ports]]\nsocket = \"*/card\"\ntenant = \"deep\"\n";
        let rule = "[[rules]]\nname = \"deep\"\ntenant = \"deep\"\nact = \"split\"\n";
        let place = Place::new("domains", &format!("{sockets}{POLICY}"));
        let mut domain = Domain::start(&place);
        let printed = domain.next_line();
        assert!(printed.contains("card on tap0: 0 rules and a default of "), "{printed}");
        let daemon = place.run();
        let ready = daemon.is_ready();
        assert!(ready.contains("0 ports under "), "a socket is no device: {ready}");
        assert_eq!(place.vcc("status").well().matches("problem").count(), 0);

        place.write(&format!("{sockets}max_flows = 5\n{POLICY}{rule}"));
        let printed = place.vcc("policy apply").well();
        let answer = printed.lines().find(|line| line.starts_with("tap0: ")).expect("an answer");
        assert!(answer.contains("obeys 1 rule and a default of "), "{printed}");
        assert!(answer.ends_with("not 5, until a restart"), "{printed}");
        assert_eq!(domain.next_line().trim_end(), &answer["tap0: ".len()..]);
        let printed = place.vcc("policy apply FILE").well();
        assert!(!printed.contains("tap0"), "a trial is the daemon's alone: {printed}");

        place.write("[[ports]]\ndevice = \"port*\"\n");
        let printed = place.vcc("policy apply");
        assert_eq!((printed.code, printed.stdout.lines().count()), (1, 1), "{}", printed.stdout);
        let answer = printed.stderr.trim_end();
        assert!(answer.starts_with("vcc: tap0: the previous policy stays in force: "), "{answer}");
        assert!(answer.ends_with("card: add one"), "{answer}");
        let ports = place.vcc("ports --json").well();
        assert!(ports.contains("\"by rule\""), "what was in force stays: {ports}");
    });
}

#[test]
fn a_process_ends_with_its_tap_though_no_guest_is_there() {
    on_a_host(|| {
        ip("tuntap add dev tap0 mode tap");
        let place = Place::new("deleted", &format!("[[ports]]\nsocket = \"*/card\"\n{POLICY}"));
        let mut domain = Domain::start(&place);
        assert!(domain.next_line().starts_with("serving "));
        ip("link delete tap0");
        let status = format!("/proc/{}/status", domain.child.id());
        eventually("its end", || fs::read_to_string(&status).expect(&status).contains("(zombie)"));
        domain.wait_for_error("the tap was deleted: create it, and restart `vcc domain`");
    });
}

#[test]
fn the_end_of_one_does_not_end_the_watch_of_others() {
    on_a_host(|| {
        let guest = guest();
        ip("tuntap add dev tap0 mode tap");
        let place = Place::new("watched", &format!("[[ports]]\nsocket = \"*/card\"\n{POLICY}"));
        place.vcc("attach port --mode shadow").well();
        let connection = connect(&guest);
        // Nothing shows that a command has begun to watch.
        let said = [200, 2000, 20_000].map(Duration::from_millis).into_iter().find_map(|begins| {
            let mut domain = Domain::start(&place);
            assert!(domain.next_line().starts_with("serving "));
            let mut watching = place.command();
            watching.args(["guests", "--seconds", "600"]);
            let watching = watching.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
            let watching = watching.expect("the command");
            thread::sleep(begins);
            drop(domain);
            // SAFETY: the call takes no pointers; the child has not been waited for.
            unsafe { libc::kill(watching.id() as libc::pid_t, libc::SIGINT) };
            let said = watching.wait_with_output().expect("its end");
            let said = said.status.code().map(|_| CommandOutput::from(said))?;
            (!said.stderr.is_empty()).then_some(said)
        });
        let said = said.expect("a watch of both");
        assert_eq!(said.stderr, "vcc: tap0 ended meanwhile: its guest is left out\n");
        assert!(said.stdout.contains("192.0.2.1"), "the guest at the other port: {}", said.stdout);
        drop(connection);
    });
}

/// Nothing but the socket says which process it is, so that no other one is disturbed.
#[test]
fn a_process_of_another_file_is_not_reloaded_and_a_silent_one_is_reported() {
    on_a_host(|| {
        ip("tuntap add dev tap0 mode tap");
        let place = Place::new("others", &format!("[[ports]]\nsocket = \"*/card\"\n{POLICY}"));
        let own = place.path("own.toml");
        fs::copy(place.config(), &own).expect("a copy");
        let mut domain = Domain::start_with(&place, &own);
        assert!(domain.next_line().starts_with("serving "));
        let daemon = place.run();
        daemon.is_ready();
        let printed = place.vcc("policy apply").well();
        let expected = format!("tap0: uses {}, which was not read again\n", own.display());
        assert!(printed.ends_with(&expected), "{printed}");

        let silent = UnixListener::bind(place.path("run/domains/tap1")).expect("a socket");
        let printed = place.vcc("policy apply");
        let expected =
            "vcc: tap1: cannot read the status of its `vcc domain`: no answer within 2 s\n";
        assert_eq!((printed.code, &*printed.stderr), (1, expected));
        drop(silent);
        place.vcc("policy apply").well();
    });
}

#[test]
fn a_file_that_cannot_be_used_changes_nothing_and_is_complained_about() {
    on_a_host(|| {
        ip("tuntap add dev tap0 mode tap");
        let sockets = "[[ports]]\nsocket = \"*/card\"\n";
        let place = Place::new("bad", &format!("{sockets}[default]\nact = \"hold\"\n"));
        let mut domain = Domain::start(&place);
        assert!(domain.next_line().starts_with("serving "));
        for (bad, problem) in [
            (format!("{sockets}[default]\nact = \"grip\"\n"), "policy.toml:4:7: error: "),
            (
                format!("{sockets}[[ports]]\ndevice = \"x\"\n[default]\nact = \"hold\"\n"),
                "`act` needs a buffer, and the ports `x` of line 4 are in the kernel",
            ),
            ("[[ports]]\ndevice = \"x\"\n".to_owned(), "card: add one"),
        ] {
            place.write(&bad);
            domain.hang_up();
            let complaints = domain.wait_for_error("the previous policy stays in force: ");
            assert!(complaints.contains(problem), "{bad}: {complaints}");
        }
        place.write(&format!("{sockets}[default]\nact = \"split\"\n"));
        domain.hang_up();
        assert!(domain.next_line().starts_with("obeys 0 rules and a default of "));
    });
}

/// Its connections would be translated twice.
#[test]
fn a_tap_that_a_process_serves_is_no_port_of_the_kernel() {
    on_a_host(|| {
        ip("tuntap add dev tap0 mode tap");
        let sockets = "[[ports]]\nsocket = \"*/card\"\n";
        let place = Place::new("served", &format!("[[ports]]\ndevice = \"tap*\"\n{sockets}"));
        let daemon = place.run();
        daemon.wait_for_log("tap0: attached");
        // As when the host starts: the daemon was first.
        let mut domain = Domain::start(&place);
        assert!(domain.next_line().starts_with("serving "));
        daemon.wait_for_log("tap0 does not become a port: `vcc domain` serves it");
        assert_eq!(place.ports(), []);
        let problems = place.status()["problems"].clone();
        assert!(problems.as_array().is_some_and(Vec::is_empty), "{problems}");
        let complaint = place.vcc("attach tap0").complaint(1);
        assert!(complaint.starts_with("`vcc domain` serves tap0, and "), "{complaint}");
        drop(daemon);
        // And now it is second.
        let daemon = place.run();
        daemon.wait_for_log("tap0 does not become a port: `vcc domain` serves it");
        drop(domain);
        daemon.wait_for_log("tap0: attached");
    });
}

/// Nor are the taps of its detour, whatever the policy says.
#[test]
fn a_device_with_a_buffer_is_no_port_of_the_kernel() {
    on_a_host(|| {
        let add =
            |number: u32| ip(&format!("link add port{number} type veth peer name guest{number}"));
        (0..2).for_each(add);
        let all = "[[ports]]\ndevice = \"port*\"\n[[ports]]\ndevice = \"vcc-*\"\n";
        let text = format!("[[ports]]\ndevice = \"port0\"\nbuffer = \"1M\"\n{all}");
        let place = Place::new("detours", &text);
        let daemon = place.run();
        daemon.wait_for_log("port1: attached");
        let mut domain = Domain::in_front_of("port0", &place);
        let printed = domain.next_line();
        assert!(printed.starts_with("serving the guest behind port0: "), "{printed}");
        add(2);
        daemon.wait_for_log("port2: attached");
        let ports: Vec<String> = place.ports().into_iter().map(|(device, _)| device).collect();
        assert_eq!(ports, ["port1", "port2"]);
        let printed = place.vcc("policy apply").well();
        assert!(printed.contains("port0: obeys 0 rules, no default of "), "{printed}");

        place.write(all);
        let printed = place.vcc("policy apply");
        assert_eq!(printed.code, 1, "{}", printed.stdout);
        let expected = "like device = \"port0\" with buffer = \"4M\"\n";
        assert!(printed.stderr.ends_with(expected), "{}", printed.stderr);
        daemon.wait_for_log("port0 does not become a port: `vcc domain` serves it");
        drop(domain);
        daemon.wait_for_log("port0: attached");
    });
}

#[test]
fn a_port_that_was_attached_by_hand_before_is_reported() {
    on_a_host(|| {
        ip("tuntap add dev tap0 mode tap");
        let place = Place::new("twice", &format!("[[ports]]\nsocket = \"*/card\"\n{POLICY}"));
        place.vcc("attach tap0").well();
        let mut domain = Domain::start(&place);
        assert!(domain.next_line().starts_with("serving "));
        let printed = place.vcc("ports");
        assert!(
            printed.stderr.ends_with("translated twice: `vcc detach tap0`\n"),
            "{}",
            printed.stderr
        );
        place.vcc("detach tap0").well();
        assert_eq!(place.vcc("ports").well().lines().count(), 1);
    });
}

const SPLITS: &str = "[[ports]]\nsocket = \"*/card\"\n[default]\nact = \"split\"\n";

fn mount_run(place: &Place, options: &str) {
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(place.path("run"));
    assert!(mount.status().expect("mount").success());
}

/// The ledger is memory of the file system's: without it, a promise would end the process.
#[test]
fn without_room_for_the_ledger_nothing_is_promised_and_the_guest_has_its_link() {
    on_a_host(|| {
        ip("tuntap add dev tap0 mode tap");
        let place = Place::new("full", SPLITS);
        mount_run(&place, "size=1m");
        let mut domain = Domain::start(&place);
        assert!(domain.next_line().starts_with("serving "));
        let complaint = domain.wait_for_error("acknowledges nothing that only this process has");
        assert!(
            complaint.contains("run/ledgers/tap0: it needs 17921 KiB: No space"),
            "{complaint}"
        );
        let printed = place.vcc("ports");
        let is_said = printed
            .stderr
            .starts_with("vcc: tap0: acknowledges nothing that only this process has")
            && printed.stderr.contains(": cannot create the ledger of promises ");
        assert!(printed.code == 0 && is_said, "{}", printed.stderr);
        assert!(!place.path("run/ledgers/tap0:new").exists());

        mount_run(&place, "remount,size=64m");
        domain.hang_up();
        assert!(domain.next_line().starts_with("obeys "));
        assert_eq!(place.vcc("ports").stderr, "");
        assert!(place.path("run/ledgers/tap0").exists());
    });
}

#[test]
fn what_is_in_place_of_the_ledger_does_not_keep_the_guest_from_its_link() {
    on_a_host(|| {
        ip("tuntap add dev tap0 mode tap");
        let place = Place::new("garbage", SPLITS);
        let ledger = place.path("run/ledgers/tap0");
        fs::create_dir(place.path("run/ledgers")).expect("a directory");
        let make: [fn(&Path); 4] = [
            |ledger| fs::write(ledger, [7; 300]).expect("written"),
            |ledger| fs::write(ledger, *b"vccl\x09\0\0\0 and more").expect("written"),
            |ledger| fs::create_dir(ledger).expect("a directory"),
            |ledger| assert!(Command::new("mkfifo").arg(ledger).status().expect("run").success()),
        ];
        for (number, make) in (1..).zip(make) {
            make(&ledger);
            let mut domain = Domain::start(&place);
            assert!(domain.next_line().starts_with("serving "));
            let set_aside = format!("run/ledgers/tap0:unreadable-{number}\n");
            let complaint = domain.wait_for_error("cannot read the ledger of promises ");
            assert!(complaint.ends_with(&set_aside), "{complaint}");
            assert_eq!(place.vcc("ports").stderr, "");
            drop(domain);
            assert!(ledger.is_file());
            fs::remove_file(&ledger).expect("removed");
        }
    });
}
