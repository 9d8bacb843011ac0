//! The daemon's log: its levels, and the journal.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use vcc_testing::{eventually, ip, on_a_host};

use super::{Daemon, POLICY, Place};

#[test]
fn the_level_changes_while_the_daemon_runs() {
    on_a_host(|| {
        let place = Place::new("levels", POLICY);
        let daemon = place.run();
        daemon.is_ready();
        assert_eq!(place.vcc("log-level").well(), "info\n");
        ip("link add before type veth peer name before-guest");
        ip("link add port1 type veth peer name guest1");
        let attached = daemon.wait_for_log("port1: attached");
        assert!(attached.starts_with("<6>"), "{attached}");

        assert_eq!(place.vcc("log-level debug").well(), "debug\n");
        let changed = daemon.wait_for_log("sets the level of this log to debug");
        assert!(changed.starts_with("<5>process "), "{changed}");
        ip("link add other type veth peer name other-guest");
        let why = daemon.wait_for_log("other: no [[ports]] of the policy makes it a port");
        assert!(why.starts_with("<7>"), "{why}");
        place.vcc("status").well();
        daemon.wait_for_log(" asks: Status");

        assert_eq!(place.vcc("log-level warning").well(), "warning\n");
        ip("link add port2 type veth peer name guest2");
        // A request that is answered afterwards.
        eventually("port2 is attached", || place.ports().len() == 2);
        place.vcc("log-level notice").well();
        let until: Vec<String> =
            daemon.lines.iter().take_while(|it| !it.contains(" to notice")).collect();
        assert!(until.iter().all(|line| !line.contains("port2")), "{until:#?}");
        assert!(place.vcc("log-level loud").complaint(2).contains("debug]"));
    });
}

#[test]
fn the_level_to_begin_with_is_an_option() {
    on_a_host(|| {
        let place = Place::new("quiet", POLICY);
        let daemon = place.run_and(&["--log-level", "error"]);
        eventually("the daemon answers", || place.vcc("log-level").code == 0);
        assert_eq!(place.vcc("log-level").well(), "error\n");
        daemon.signal(libc::SIGTERM);
        assert_eq!(daemon.log_before_its_end(""), None);
        assert_eq!(daemon.end(), 0);
        assert!(place.vcc("log-level").complaint(1).contains("no daemon listens at"));
    });
}

/// Listens where systemd-journald does.
struct Journal(UnixDatagram);

/// The fields of an event.
type Entry = HashMap<String, String>;

impl Journal {
    /// In the mount namespace of this thread, and where it hides the machine's.
    fn begin() -> Self {
        let mount = Command::new("mount").args(["-t", "tmpfs", "vcc-test", "/run"]).status();
        assert!(mount.expect("mount").success());
        fs::create_dir_all("/run/systemd/journal").expect("a directory");
        let socket = UnixDatagram::bind("/run/systemd/journal/socket").expect("a socket");
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a limit");
        Self(socket)
    }

    /// The next event with that part in its text.
    fn wait_for(&self, part: &str) -> Entry {
        let mut bytes = [0; 1 << 16];
        loop {
            let length = self.0.recv(&mut bytes).expect("an event");
            let entry = entry(&bytes[..length]);
            let text = entry.get("MESSAGE").map_or("", String::as_str);
            assert!(!text.contains('\n'), "{text}");
            if text.contains(part) {
                return entry;
            }
        }
    }
}

/// Reads https://systemd.io/JOURNAL_NATIVE_PROTOCOL/.
fn entry(mut bytes: &[u8]) -> Entry {
    let mut entry = Entry::new();
    let line = |bytes: &[u8]| bytes.iter().position(|byte| *byte == b'\n').expect("an end");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    while !bytes.is_empty() {
        let end = line(bytes);
        let (name, rest) = (text(&bytes[..end]), &bytes[end + 1..]);
        if let Some((name, value)) = name.split_once('=') {
            entry.insert(name.into(), value.into());
            bytes = rest;
            continue;
        }
        let (length, rest) = rest.split_at(8);
        let length = u64::from_le_bytes(length.try_into().expect("eight bytes")) as usize;
        entry.insert(name, text(&rest[..length]));
        bytes = &rest[length + 1..];
    }
    entry
}

#[test]
fn an_event_in_the_journal_names_its_port() {
    on_a_host(|| {
        let journal = Journal::begin();
        let place = Place::new("journal", POLICY);
        let (stderr, mut other) = UnixStream::pair().expect("a stream");
        let stderr = OwnedFd::from(stderr);
        let file = File::from(stderr.try_clone().expect("a copy")).metadata().expect("its inode");
        let mut command = place.command();
        command.args(["run", "--listen", "off", "--config"]).arg(place.config()).stderr(stderr);
        command.env("JOURNAL_STREAM", format!("{}:{}", file.dev(), file.ino()));
        let child = command.spawn().expect("the command");
        drop(command);
        let daemon = Daemon { child, lines: mpsc::channel().1 };

        let ready = journal.wait_for(", epoch 1");
        assert_eq!((&*ready["PRIORITY"], ready.get("VCC_DEVICE")), ("5", None), "{ready:?}");
        assert_eq!(ready["SYSLOG_IDENTIFIER"], "vcc");
        ip("link add port1 type veth peer name guest1");
        let attached = journal.wait_for("port1: attached");
        let of = |entry: &Entry, name: &str| entry.get(name).cloned().unwrap_or_default();
        let fields = ["PRIORITY", "VCC_DEVICE", "VCC_TENANT"].map(|name| of(&attached, name));
        assert_eq!(fields, ["6", "port1", "acme"], "{attached:?}");

        place.write("[[ports]]\ndevice = \"a\\n<0>b\"\n");
        daemon.signal(libc::SIGHUP);
        let refused = journal.wait_for("policy.toml:2:");
        assert_eq!(of(&refused, "PRIORITY"), "3", "{refused:?}");
        daemon.signal(libc::SIGTERM);
        journal.wait_for("ending: everything stays attached");
        assert_eq!(daemon.end(), 0);
        let mut rest = String::new();
        other.read_to_string(&mut rest).expect("an end");
        assert_eq!(rest, "", "each event is in the journal once");
    });
}
