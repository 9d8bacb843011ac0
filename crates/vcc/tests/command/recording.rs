use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use vcc_testing::{eventually, guest, on_a_host};

use crate::background::Background;
use crate::wire::{connect, connect_to, ends, exchange, neighbour};
use crate::{CommandOutput, command, vcc};

const FILE: &str = "recording.pcapng";

/// `vcc record` in the background, from when it records.
struct Running(Background);

impl Running {
    fn begin(arguments: &str) -> Self {
        let running = Self(Background::begin("record", arguments, FILE));
        // The interfaces are written when the recording has begun.
        eventually("interfaces", || {
            fs::metadata(running.path()).is_ok_and(|file| file.len() > 100)
        });
        running
    }

    fn path(&self) -> PathBuf {
        self.0.path()
    }

    /// By Ctrl-C.
    fn end(self) -> (CommandOutput, TempDir) {
        self.0.signal(libc::SIGINT);
        self.wait()
    }

    fn wait(self) -> (CommandOutput, TempDir) {
        self.0.wait()
    }
}

/// A command in the directory of a recording.
fn vcc_in(directory: &TempDir, arguments: &str) -> CommandOutput {
    let mut command = command();
    command.current_dir(directory.path()).args(arguments.split_whitespace());
    command.output().expect("the command").into()
}

#[test]
fn a_recording_proves_what_vcc_has_changed() {
    on_a_host(|| {
        let guest = guest();
        vcc("attach port").well();
        let running = Running::begin("port --buffer-mib 64");
        let mode = fs::metadata(running.path()).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let (mut here, mut there) = connect(&guest);
        exchange(&mut here, &mut there);
        let guest_end = ends(&here)[0].clone();
        drop((here, there));
        let (shown, directory) = running.end();
        let shown = shown.well();
        for part in [FILE, " at port (guest side), ", " at port (fabric side)"] {
            assert!(shown.contains(part), "{shown}");
        }
        let both = vcc_in(&directory, &format!("read --both {FILE}")).well();
        for part in [
            "recording.pcapng, port (guest side): ",
            "recording.pcapng, port (fabric side): ",
            " MiB compared, all equal",
            "windows lowered toward the guest",
            "No differences other than those in docs/translation.md",
        ] {
            assert!(both.contains(part), "{part}\n{both}");
        }
        let payload = both.split("Payload: ").nth(1).and_then(|rest| rest.split(' ').next());
        let payload_mib: f64 = payload.and_then(|mib| mib.parse().ok()).expect("a number");
        // Segments that were sent again count, too.
        assert!(payload_mib >= 2.0, "{both}");
        let read = vcc_in(&directory, &format!("read {FILE}")).well();
        for side in ["(guest side)", "(fabric side)"] {
            assert!(read.contains(&format!("{FILE}:port {side} ")), "{read}");
        }
        assert_eq!(read.matches(&guest_end).count(), 2, "{read}");
        let by_device = format!("read --both {FILE} --device port");
        assert!(vcc_in(&directory, &by_device).well().contains("all equal"));
        let complaint = vcc_in(&directory, &format!("read --both {FILE} --device other"));
        assert!(complaint.complaint(1).contains("has no port other, but port"));
        // Another program reads it, where it is installed.
        let dump =
            Command::new("tcpdump").args(["-nr", FILE]).current_dir(directory.path()).output();
        if let Ok(dump) = dump {
            let packets = String::from_utf8_lossy(&dump.stdout).lines().count();
            let count = shown.split(": ").nth(1).and_then(|rest| rest.split(' ').next());
            assert_eq!(count, Some(packets.to_string().as_str()), "{shown}");
        }
    });
}

/// A recording has the directions of its packets, so no end has to be named.
#[test]
fn the_guest_of_a_recording_may_be_the_end_that_listens() {
    on_a_host(|| {
        let guest = guest();
        vcc("attach port").well();
        let running = Running::begin("port");
        let listener = guest.inside(|| TcpListener::bind("192.0.2.1:0")).expect("inside");
        let listener = listener.expect("a listener");
        let end = listener.local_addr().expect("an address");
        let mut here = TcpStream::connect(end).expect("a connection");
        let mut there = listener.accept().expect("a connection").0;
        exchange(&mut here, &mut there);
        drop((here, there));
        let (shown, directory) = running.end();
        shown.well();
        let both = vcc_in(&directory, &format!("read --both {FILE}")).well();
        assert!(both.contains("No differences other than those in docs/translation.md"), "{both}");
        let rows = vcc_in(&directory, &format!("read {FILE} --json")).well();
        let rows: Value = serde_json::from_str(&rows).expect("JSON");
        let guests: Vec<&str> = rows["flows"]
            .as_array()
            .expect("rows")
            .iter()
            .filter_map(|row| row["guest"].as_str())
            .collect();
        assert_eq!(guests, vec![end.to_string(); 2], "{rows}");
    });
}

/// Where both ends are under vcc, it sends reports of its own, by clones of the guest's segments.
#[test]
fn the_guests_side_has_what_the_guest_sends_alone() {
    on_a_host(|| {
        const BYTES: usize = 4 << 20;
        let guest = guest();
        let other = neighbour();
        vcc("attach port --underlay dctcp").well();
        vcc("attach other --underlay dctcp").well();
        let running = Running::begin("port --buffer-mib 64 --snaplen 128");
        for round in 0..10 {
            let ends = connect_to(&guest, &other, &format!("192.0.2.3:{}", 5001 + round));
            // At the same time, so that acknowledgements are on full segments.
            thread::scope(|scope| {
                for mut end in [&ends.0, &ends.1] {
                    scope.spawn(move || end.write_all(&vec![1; BYTES]).expect("sent"));
                    scope.spawn(move || end.read_exact(&mut vec![0; BYTES]).expect("received"));
                }
            });
        }
        let (shown, directory) = running.end();
        shown.well();
        let both = vcc_in(&directory, &format!("read --both {FILE} --json")).well();
        let both: Value = serde_json::from_str(&both).expect("JSON");
        let alone = &both["total"]["only_from_guest"];
        assert_eq!(alone["guest"]["segments"], 0, "{alone}");
        assert!(alone["fabric"]["segments"].as_u64() > Some(0), "no report was sent: {alone}");
        let doctor = vcc("doctor --device port");
        assert!(!doctor.stdout.contains("record_"), "{}", doctor.stdout);
    });
}

#[test]
fn packets_and_sides_are_chosen() {
    on_a_host(|| {
        let guest = guest();
        vcc("attach port --mode shadow").well();
        let connections = [connect(&guest), connect(&guest)];
        let [wanted_end, _] = ends(&connections[1].0);
        let wanted_port = wanted_end.rsplit(':').next().expect("a port").to_owned();
        let running = Running::begin(&format!("--side fabric --guest :{wanted_port} --snaplen 96"));
        for (mut here, mut there) in connections {
            exchange(&mut here, &mut there);
        }
        let (shown, directory) = running.end();
        let shown = shown.well();
        assert!(!shown.contains("guest side"), "{shown}");
        let read = vcc_in(&directory, &format!("read {FILE}")).well();
        assert!(read.contains(&wanted_end), "{read}");
        assert!(read.contains(" TCP segments, 1 connection\n"), "{read}");
        let refusal = vcc_in(&directory, &format!("read --both {FILE}")).complaint(1);
        assert!(refusal.contains("does not have both sides of a port"), "{refusal}");
    });
}

#[test]
fn a_recording_ends_by_itself() {
    on_a_host(|| {
        let guest = guest();
        vcc("attach port").well();
        let (mut here, mut there) = connect(&guest);
        let running = Running::begin("port --count 10");
        exchange(&mut here, &mut there);
        let (shown, _directory) = running.wait();
        assert!(shown.well().contains(": 10 packets, "));
        let (shown, _directory) = Running::begin("--duration 0.2").wait();
        shown.well();
        let running = Running::begin("port --max-mib 1 --buffer-mib 64");
        for _ in 0..4 {
            exchange(&mut here, &mut there);
        }
        let (_, directory) = running.wait();
        let bytes = fs::metadata(directory.path().join(FILE)).expect("a file").len();
        assert!((1 << 20..2 << 20).contains(&bytes), "{bytes} bytes");
        drop((here, there));
        let other = neighbour();
        vcc("attach other").well();
        let running = Running::begin("port other");
        vcc("detach --now other").well();
        drop(other);
        // That of the other port continues.
        thread::sleep(Duration::from_secs(1));
        let (mut here, mut there) = connect(&guest);
        exchange(&mut here, &mut there);
        let guest_end = ends(&here)[0].clone();
        vcc("detach --now port").well();
        let (shown, directory) = running.wait();
        let ended = |device| {
            format!("vcc was detached from {device}, or {device} has gone: its recording has ended")
        };
        let order = ["other", "port"].map(|device| shown.stderr.find(&ended(device)));
        assert!(order[0].is_some() && order[0] < order[1], "{}", shown.stderr);
        let read = vcc_in(&directory, &format!("read {FILE}")).well();
        assert_eq!(read.matches(&guest_end).count(), 2, "{read}");
    });
}

#[test]
fn a_recording_streams_to_a_pipe() {
    on_a_host(|| {
        let guest = guest();
        vcc("attach port").well();
        let mut recorder = command();
        recorder.args(["record", "port", "--count", "100"]).stdout(Stdio::piped());
        let mut recorder = recorder.spawn().expect("the command");
        let to = recorder.stdout.take().expect("a pipe");
        let mut reader = command();
        reader.args(["read", "-"]).stdin(to).stdout(Stdio::piped()).stderr(Stdio::piped());
        let reader = reader.spawn().expect("the command");
        while recorder.try_wait().expect("a status").is_none() {
            let (mut here, mut there) = connect(&guest);
            exchange(&mut here, &mut there);
        }
        assert!(recorder.wait().expect("its end").success());
        let shown: CommandOutput = reader.wait_with_output().expect("its end").into();
        assert!(shown.well().contains("-: 100 packets"));
    });
}

#[test]
fn what_cannot_be_recorded_is_refused() {
    on_a_host(|| {
        let _guest = guest();
        for (arguments, code, part) in [
            ("record", 1, "vcc is attached to no device in the kernel"),
            ("record port", 1, "vcc is not attached to `port`"),
            ("record nowhere", 1, "nowhere"),
            ("record --buffer-mib 3", 2, "must be a power of two of at most 1024"),
            ("record --snaplen 10", 2, "96..=262144"),
        ] {
            let complaint = vcc(arguments).complaint(code);
            assert!(complaint.contains(part), "{arguments}: {complaint}");
        }
        vcc("attach port").well();
        let complaint = vcc("record port --output /nowhere/a.pcapng").complaint(1);
        assert!(complaint.contains("cannot write /nowhere/a.pcapng"), "{complaint}");
    });
}
