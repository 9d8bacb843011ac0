//! `vcc read`: connections in captures.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use vcc_capture::testing::{EPOCH_NS, MSS_BYTES, Pcapng, Style, Timed, frames, pcap, talk};
use vcc_frames::wire::{ACK, CWR, ECE, SYN};
use vcc_frames::{Packet, options, payload};

use crate::{CommandOutput, command};

const GUEST: &str = "10.0.0.2:40000";
const PEER: &str = "192.0.2.9:80";

/// The frames of a connection of 48 segments, one of them a retransmission.
pub fn connection() -> Vec<Timed<Vec<u8>>> {
    let [guest, peer]: [SocketAddr; 2] = [GUEST, PEER].map(|end| end.parse().expect("an end"));
    frames(&talk(guest, peer))
}

/// A capture of it.
pub fn capture() -> Vec<u8> {
    pcap(Style::default(), 1, &connection())
}

struct Files {
    directory: TempDir,
}

impl Files {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a directory") }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.directory.path().join(name);
        fs::write(&path, bytes).expect("a file");
        path
    }

    /// In the directory of the files.
    fn vcc(&self, arguments: &str) -> CommandOutput {
        let mut command = command();
        command.current_dir(self.directory.path()).args(arguments.split_whitespace());
        command.output().expect("the command").into()
    }
}

/// The cells below the heading of each column, separated by two spaces or more.
fn cells(line: &str) -> Vec<&str> {
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

#[test]
fn a_connection_in_a_capture() {
    let files = Files::new();
    files.write("a.pcap", &capture());
    let text = files.vcc("read a.pcap").well();
    let [header, row, ..] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
    let cell = |heading| {
        let at = cells(header).iter().position(|it| *it == heading);
        cells(row)[at.unwrap_or_else(|| panic!("no {heading}: {text}"))]
    };
    for (heading, value) in [
        ("PORT", "a.pcap"),
        ("GUEST", GUEST),
        ("PEER", PEER),
        ("STAGE", "closed"),
        ("UNDERLAY", "reno-ecn"),
        ("LIMITED-BY", "closed"),
        ("SRTT", "20.0 ms"),
        ("REDUCTIONS", "1"),
        ("RETRANS", "1"),
        ("BEGAN", "0 us"),
        ("LASTED", "100 ms"),
        ("SENT", "19.5 KiB"),
        ("BEYOND", "0.000"),
    ] {
        assert_eq!(cell(heading), value, "{heading}: {text}");
    }
    assert!(text.contains("not known from a file"), "{text}");
    assert!(
        text.contains("\na.pcap: 48 packets in 100 ms, 48 TCP segments, 1 connection\n"),
        "{text}"
    );
}

#[test]
fn json_has_files_and_connections() {
    let files = Files::new();
    let mut unknown = connection();
    unknown.drain(..2);
    files.write("a.pcap", &capture());
    files.write("b.pcap", &pcap(Style::default(), 1, &unknown));
    let text = files.vcc("read --json --underlay cubic a.pcap b.pcap").well();
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let [a, b] = ["0", "1"].map(|at| document.pointer(&format!("/files/{at}")).expect("a file"));
    assert_eq!(
        (&a["file"], &a["packets"], &a["connections"]),
        (&"a.pcap".into(), &48.into(), &1.into())
    );
    assert_eq!(a["first_time_s"], 1_700_000_000.123_456);
    assert_eq!(a["counters"]["unknown"], 0);
    assert_eq!((&b["connections"], &b["connections_without_syn"]), (&1.into(), &1.into()));
    assert_eq!((&a["captured_at"], &a["captured_at_by"]), (&"guest".into(), &1.into()));
    assert_eq!((&b["captured_at"], &b["guest_part"]), (&Value::Null, &Value::Null));
    let [flow, joined] = &document["flows"].as_array().expect("connections")[..] else {
        panic!("{text}");
    };
    assert_eq!((&flow["has_syn"], &joined["has_syn"]), (&true.into(), &false.into()));
    assert_eq!(
        (&joined["port"], &joined["window_received_bytes"]),
        (&"b.pcap".into(), &Value::Null)
    );
    let shares = flow["limited_by_share"].as_object().expect("shares");
    let sum: f64 = shares.values().filter_map(Value::as_f64).sum();
    assert!((sum - 1.0).abs() < 1e-9 && shares["loss"].as_f64() > Some(0.0), "{shares:?}");
    assert_eq!((&flow["port"], &flow["underlay"]), (&"a.pcap".into(), &"cubic".into()));
    assert_eq!((&flow["retransmissions"], &flow["sent_bytes"]), (&1.into(), &20_001.into()));
    let rate = flow["goodput_bits_per_s"].as_f64().expect("a rate");
    assert!((1.5e6..1.7e6).contains(&rate), "{rate}");
}

#[test]
fn the_standard_input() {
    let files = Files::new();
    let path = files.write("a.pcap", &capture());
    let mut read = command();
    read.args(["read", "-", "--json"]).stdin(File::open(path).expect("the file"));
    let text = CommandOutput::from(read.output().expect("the command")).well();
    let document: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(document["files"][0]["packets"], 48);
}

#[test]
fn the_user_names_the_guest() {
    let files = Files::new();
    files.write("a.pcap", &capture());
    for (guest, rows) in [("10.0.0.0/8", Some(GUEST)), (":80", Some(PEER)), ("10.0.0.3", None)] {
        let text = files.vcc(&format!("read a.pcap --json --guest {guest}")).well();
        let document: Value = serde_json::from_str(&text).expect("JSON");
        let of: Option<&str> = document["flows"][0]["guest"].as_str();
        assert_eq!(of, rows, "{guest}");
        let others = if rows.is_none() { 48 } else { 0 };
        assert_eq!(document["files"][0]["segments_of_others"], others, "{guest}");
    }
}

#[test]
fn each_interface_has_its_port() {
    let files = Files::new();
    let mut file = Pcapng::new(Style::default());
    file.interface(1, "tap0", 6, 0);
    file.interface(1, "eth0", 6, 0);
    for (time_ns, frame) in &connection() {
        (0..2).for_each(|interface| file.packet(interface, time_ns / 1000, frame));
    }
    files.write("a.pcapng", &file.file);
    let text = files.vcc("read a.pcapng --reverse").well();
    let ports: Vec<&str> = text.lines().skip(1).take(2).map(|line| cells(line)[0]).collect();
    assert_eq!(ports, ["a.pcapng:tap0", "a.pcapng:eth0"], "{text}");
    let text = files.vcc("read a.pcapng --top 1").well();
    assert!(text.contains("a.pcapng:eth0") && !text.contains("a.pcapng:tap0"), "{text}");
}

/// What precedes the damage is shown.
#[test]
fn a_damaged_file() {
    let files = Files::new();
    let whole = capture();
    files.write("a.pcap", &whole[..whole.len() - 60]);
    files.write("b.pcap", b"{\"no\": \"capture\"}");
    let printed = files.vcc("read a.pcap b.pcap");
    assert_eq!(printed.code, 3, "{}", printed.stderr);
    let offset = whole.len() - (16 + 54);
    let expected = [
        format!("vcc: a.pcap, byte {offset}: the file ends within a packet: "),
        "vcc: b.pcap, byte 0: the file begins with 0x6f6e227b, and is neither pcap nor pcapng: "
            .into(),
    ];
    let lines: Vec<&str> = printed.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{}", printed.stderr);
    for (line, expected) in lines.iter().zip(&expected) {
        assert!(line.starts_with(expected), "{line}");
    }
    assert!(printed.stdout.contains("a.pcap: 47 packets"), "{}", printed.stdout);
    assert!(printed.stdout.contains(GUEST), "{}", printed.stdout);
    let complaint = files.vcc("read nowhere.pcap").complaint(1);
    assert!(complaint.starts_with("cannot open nowhere.pcap: "), "{complaint}");
    let complaint = files.vcc("read").complaint(2);
    assert!(complaint.contains("FILE"), "{complaint}");
}

/// Names of interfaces come from the file.
#[test]
fn hostile_names_are_escaped() {
    let files = Files::new();
    let mut file = Pcapng::new(Style::default());
    file.interface(1, "a\x1b[2J\n", 6, 0);
    file.interface(1, "b", 6, 0);
    for (time_ns, frame) in &connection() {
        (0..2).for_each(|interface| file.packet(interface, time_ns / 1000, frame));
    }
    file.interface(105, "c\x1b[2J\n", 6, 0);
    files.write("a.pcapng", &file.file);
    for arguments in ["read a.pcapng", "read a.pcapng --json"] {
        let printed = files.vcc(arguments);
        assert_eq!(printed.code, 3, "{}", printed.stderr);
        assert!(!printed.stdout.contains('\x1b') && !printed.stderr.contains('\x1b'));
        assert_eq!(printed.stderr.lines().count(), 1, "{}", printed.stderr);
    }
}

#[test]
fn compressed_files() {
    let files = Files::new();
    let gzip = {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut encoder, &capture()).expect("memory");
        encoder.finish().expect("memory")
    };
    files.write("a.pcap", &capture());
    files.write("b.pcap", &gzip);
    files.write("cut.pcap", &gzip[..gzip.len() / 2]);
    let [plain, compressed] = ["a", "b"].map(|name| files.vcc(&format!("read {name}.pcap")).well());
    assert_eq!(compressed.replace("b.pcap", "a.pcap"), plain);
    let cut = files.vcc("read cut.pcap");
    assert_eq!(cut.code, 3, "{}", cut.stderr);
    assert!(cut.stderr.contains("cut.pcap (decompressed), byte "), "{}", cut.stderr);
}

#[test]
fn connections_are_chosen() {
    let files = Files::new();
    files.write("a.pcap", &capture());
    let rows = |options: &str| {
        let text = files.vcc(&format!("read a.pcap --json {options}")).well();
        let document: Value = serde_json::from_str(&text).expect("JSON");
        document["flows"].as_array().expect("connections").len()
    };
    for (options, count) in [
        ("--peer 192.0.2.9", 1),
        ("--peer :81", 0),
        ("--stage closed --with retransmissions", 1),
        ("--with marks", 0),
        ("--ecn guest", 0),
        ("--guest 02:00:00:00:00:99", 0),
        ("--since 0.05", 1),
        ("--since 5", 0),
    ] {
        assert_eq!(rows(options), count, "{options}");
    }
}

#[test]
fn all_that_is_known_of_a_connection() {
    let files = Files::new();
    files.write("a.pcap", &capture());
    let text = files.vcc("read a.pcap --explain").well();
    for part in [
        "10.0.0.2:40000 to 192.0.2.9:80, in a.pcap:\n",
        "  Limited by, over time",
        "  Guest's SYN            MSS 1000, no scale, no SACK, no timestamps, no ECN\n",
        "  Sent                   19.5 KiB\n",
        "  Peer's handshake       20.0 ms\n",
        "captured at the guest: 0 % of the handshake's round trip",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("  -\n"), "{text}");
}

#[test]
fn a_connection_is_drawn() {
    let files = Files::new();
    let mut both = connection();
    let [guest, peer]: [SocketAddr; 2] =
        ["10.0.0.2:41000", PEER].map(|end| end.parse().expect("an end"));
    both.extend(frames(&talk(guest, peer)));
    both.sort_by_key(|(time_ns, _)| *time_ns);
    files.write("a.pcap", &pcap(Style::default(), 1, &both));
    let drawn = files.vcc("read a.pcap --guest :40000 --plot a.svg").well();
    assert!(drawn.ends_with("10.0.0.2:40000 - 192.0.2.9:80 drawn: a.svg\n"), "{drawn}");
    let svg = fs::read_to_string(files.directory.path().join("a.svg")).expect("a picture");
    assert!(svg.contains(">sent again</text>") && svg.ends_with("</svg>\n"), "{svg}");
    let several = files.vcc("read a.pcap --plot a.svg");
    assert_eq!(several.code, 1, "{}", several.stderr);
    let named = "--guest 10.0.0.2:41000 --peer 192.0.2.9:80: name one";
    assert!(several.stderr.contains(named), "{}", several.stderr);
    let none = files.vcc("read a.pcap --plot a.svg --peer :81");
    assert!(none.stderr.contains("no connection has these ends"), "{}", none.stderr);
    let nowhere = files.vcc("read a.pcap --plot nowhere/a.svg");
    assert!(nowhere.stderr.contains("cannot write nowhere/a.svg"), "{}", nowhere.stderr);
}

#[test]
fn rules_of_a_policy_treat_connections() {
    let files = Files::new();
    files.write("a.pcap", &capture());
    files.write(
        "p.toml",
        br#"
            [[ports]]
            device = "tap1"
            tenant = "shop"

            [[rules]]
            name = "web"
            tenant = "shop"
            peer_port = 80
            underlay = "cubic"

            [default]
            mode = "shadow"
            underlay = "swift"
        "#,
    );
    for (options, rule, underlay) in [("", "default", "swift"), ("--device tap1", "web", "cubic")] {
        let text = files.vcc(&format!("read a.pcap --policy p.toml {options} --json")).well();
        let document: Value = serde_json::from_str(&text).expect("JSON");
        let flow = &document["flows"][0];
        assert_eq!((&flow["rule"], &flow["underlay"]), (&rule.into(), &underlay.into()), "{text}");
    }
    let text = files.vcc("read a.pcap --policy p.toml --tenant shop").well();
    for part in [
        "rule web, cubic in enforce mode: 1 connection\n",
        "rule default, swift in shadow mode: 0 connections\n",
        "those of the rules' underlays",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let nowhere = files.vcc("read a.pcap --policy p.toml --device tap3");
    assert_eq!(nowhere.code, 1);
    assert!(nowhere.stderr.contains("`tap3` is no port"), "{}", nowhere.stderr);
    assert_eq!(files.vcc("read a.pcap --policy p.toml --underlay cubic").code, 2);
    assert_eq!(files.vcc("read a.pcap --tenant shop").code, 2);
}

#[test]
fn pairs_of_hosts() {
    let files = Files::new();
    let mut packets = connection();
    for guest in ["10.0.0.2:41000", "10.0.0.3:41000"] {
        let [guest, peer]: [SocketAddr; 2] = [guest, PEER].map(|end| end.parse().expect("an end"));
        packets.extend(frames(&talk(guest, peer)));
    }
    packets.sort_by_key(|(time_ns, _)| *time_ns);
    files.write("a.pcap", &pcap(Style::default(), 1, &packets));
    let text = files.vcc("read a.pcap --hosts").well();
    let rows: Vec<Vec<&str>> = text.lines().take(3).map(cells).collect();
    assert_eq!(rows[0][..5], ["GUEST", "PEER", "CONNECTIONS", "SENT", "ACKED"], "{text}");
    assert_eq!(rows[1][..4], ["10.0.0.2", "192.0.2.9", "2", "39.1 KiB"], "{text}");
    assert_eq!(rows[2][..4], ["10.0.0.3", "192.0.2.9", "1", "19.5 KiB"], "{text}");
    let json = files.vcc("read a.pcap --hosts --json --guest 10.0.0.3").well();
    let document: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(document["hosts"][0]["retransmissions"], 1);
    assert!(document.get("flows").is_none(), "{json}");
}

/// The file ends within a packet until its rest is written.
#[test]
fn a_file_that_grows_is_followed() {
    let files = Files::new();
    let (mut child, path, rest) = followed(&files, &["--stage", "established,closed"]);
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut wait_for = |stage: &str| {
        lines.any(|line| line.expect("UTF-8").split_whitespace().any(|cell| cell == stage))
    };
    assert!(wait_for("established"));
    let mut file = File::options().append(true).open(&path).expect("the file");
    file.write_all(&rest).expect("written");
    assert!(wait_for("closed"));
    interrupt(&child);
    assert_eq!(child.wait().expect("an end").code(), Some(0));
    drop(lines);
}

/// A child that follows a file of which half is written, and the rest of the file.
fn followed(files: &Files, options: &[&str]) -> (Child, PathBuf, Vec<u8>) {
    let capture = capture();
    let (begun, rest) = capture.split_at(capture.len() / 2 + 7);
    let path = files.write("a.pcap", begun);
    let mut follow = command();
    follow.arg("read").arg(&path).arg("--follow").args(options);
    (follow.stdout(Stdio::piped()).spawn().expect("the command"), path, rest.to_vec())
}

/// Each table has a row for each end, also while the file grows; Ctrl-C ends it.
#[test]
fn each_end_of_a_file_that_grows_is_followed() {
    let files = Files::new();
    let (mut child, path, rest) = followed(&files, &["--each-end"]);
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut wait_for_both = |stage: &str| {
        let mut missing = vec![GUEST, PEER];
        lines.any(|line| {
            let line = line.expect("UTF-8");
            let cells: Vec<&str> = line.split_whitespace().collect();
            match cells.as_slice() {
                // Each table begins with its heading.
                [_, "GUEST", ..] => missing = vec![GUEST, PEER],
                cells if cells.contains(&stage) => missing.retain(|end| *end != cells[1]),
                _ => {}
            }
            missing.is_empty()
        })
    };
    assert!(wait_for_both("established"));
    let mut file = File::options().append(true).open(&path).expect("the file");
    file.write_all(&rest).expect("written");
    assert!(wait_for_both("closed"));
    interrupt(&child);
    assert_eq!(child.wait().expect("an end").code(), Some(0));
    drop(lines);
}

/// What is printed at the end is what a file shows that has ended.
#[test]
fn each_end_of_a_pipe_is_followed_to_its_end() {
    let files = Files::new();
    let path = files.write("a.pcap", &capture());
    let of = |arguments: &[&str]| {
        let mut read = command();
        read.args(["read", "-", "--each-end"]).args(arguments);
        read.stdin(File::open(&path).expect("the file"));
        CommandOutput::from(read.output().expect("the command")).well()
    };
    assert_eq!(of(&["--json", "--follow"]), of(&["--json"]));
    let (followed, whole) = (of(&["--follow"]), of(&[]));
    assert!(followed.ends_with(&(whole + "\n")), "{followed}");
}

/// As Ctrl-C does.
fn interrupt(child: &Child) {
    let pid = i32::try_from(child.id()).expect("a pid");
    // SAFETY: it signals a child that has not been waited for.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGINT) }, 0);
}

/// The input ends, so there is no need for Ctrl-C.
#[test]
fn a_pipe_is_followed_to_its_end() {
    let files = Files::new();
    files.write("a.pcap", &capture());
    let mut follow = command();
    follow.args(["read", "-", "--follow", "--json"]);
    follow.stdin(File::open(files.directory.path().join("a.pcap")).expect("the file"));
    let text = CommandOutput::from(follow.output().expect("the command")).well();
    let document: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(document["flows"][0]["stage"], "closed");
    let two = files.vcc("read a.pcap a.pcap --follow");
    assert_eq!((two.code, &*two.stderr), (1, "vcc: --follow reads one file, and 2 are given\n"));
}

/// The connection on both sides of a port that marks the guest's data as ECT. A segment is 20 us later on the
/// side at which it leaves.
fn on_both_sides() -> [Vec<Timed<Vec<u8>>>; 2] {
    const DELAY_NS: u64 = 20_000;
    let [mut guest, mut fabric] = [connection(), connection()];
    for (one, other) in guest.iter_mut().zip(&mut fabric) {
        let from_guest = one.1[34..36] == 40_000_u16.to_be_bytes();
        let later = if from_guest { &mut *other } else { one };
        later.0 += DELAY_NS;
        if other.1.len() > 1000 {
            // The type of service.
            other.1[15] |= 2;
        }
    }
    [guest, fabric]
}

fn write_both(files: &Files, sides: &[Vec<Timed<Vec<u8>>>; 2]) {
    for (name, frames) in ["guest.pcap", "fabric.pcap"].iter().zip(sides) {
        files.write(name, &pcap(Style::default(), 1, frames));
    }
}

const BOTH: &str = "read --both guest.pcap fabric.pcap";

#[test]
fn both_sides_of_a_port() {
    let files = Files::new();
    write_both(&files, &on_both_sides());
    let text = files.vcc(BOTH).well();
    let [header, row, ..] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
    let expected = [
        ("GUEST", GUEST),
        ("PEER", PEER),
        ("GUEST'S-SIDE", "48"),
        ("FABRIC'S-SIDE", "48"),
        ("COMPARED", "20.5 KiB"),
        ("DIFFERENT", "0 B"),
        ("CHANGES", "21"),
        ("ONLY-GUEST", "0"),
        ("ONLY-FABRIC", "0"),
        ("ERRORS", "0"),
    ];
    assert_eq!(cells(header), expected.map(|(heading, _)| heading), "{text}");
    assert_eq!(cells(row), expected.map(|(_, value)| value), "{text}");
    for line in [
        "guest.pcap: 48 packets, 48 TCP segments",
        "Payload: 20.5 KiB compared, all equal",
        "          21  ECN field: ECT set",
        "Median time from one side to the other: 20 us from the guest, 20 us to it",
        "No differences other than those in docs/translation.md",
    ] {
        assert!(text.lines().any(|it| it == line), "{line} in {text}");
    }
    let wide = files.vcc(&format!("{BOTH} --wide")).well();
    assert!(wide.contains("PAIRS") && wide.contains("UNCAPTURED"), "{wide}");
    let swapped = files.vcc("read --both fabric.pcap guest.pcap").well();
    assert!(swapped.contains("exchange the files"), "{swapped}");
    let others = files.vcc(&format!("{BOTH} --guest 10.9.9.9")).well();
    assert!(others.contains("No segment is in both files"), "{others}");
}

#[test]
fn what_vcc_leaves_alone_differs_on_both_sides() {
    let files = Files::new();
    let [guest, mut fabric] = on_both_sides();
    let is_data = |(_, frame): &(u64, Vec<u8>)| frame.len() > 1000;
    for (_, frame) in fabric.iter_mut().filter(|timed| is_data(timed)).skip(1) {
        *frame.last_mut().expect("payload") ^= 1;
        // Reserved bits.
        frame[46] |= 2;
    }
    // The SYN is on the guest's side alone.
    fabric.drain(..1);
    write_both(&files, &[guest, fabric]);
    let printed = files.vcc(BOTH);
    assert_eq!((printed.code, printed.stderr.as_str()), (1, ""), "{}", printed.stdout);
    let text = &printed.stdout;
    let errors: Vec<&str> = text.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(errors.len(), 20, "{text}");
    assert!(text.contains("\n40 differences that vcc does not make:\n"), "{text}");
    assert!(text.contains("\nand 20 more\n"), "{text}");
    assert!(
        errors[0].starts_with(
            "error: 10.0.0.2:40000 > 192.0.2.9:80, segment 1001, reserved bits: 0x0 in \
             guest.pcap at byte "
        ),
        "{text}"
    );

    let json = files.vcc(&format!("{BOTH} --json"));
    assert_eq!(json.code, 1, "{}", json.stderr);
    let document: Value = serde_json::from_str(&json.stdout).expect("JSON");
    let total = &document["total"];
    assert_eq!(total["errors"], 40);
    assert_eq!(total["payload_different_bytes"], 20);
    assert_eq!(total["only_from_guest"]["guest"]["segments"], 1);
    assert_eq!(document["connections"][0]["errors"], 40);
    let error = &document["errors"][1];
    assert_eq!((&error["field"], &error["payload_at"]), (&"payload".into(), &999.into()));
    let offset = error["offsets"]["guest"].as_u64().expect("an offset") as usize;
    let record = &capture()[offset..];
    assert_eq!(record[16..][38..42], 1001_u32.to_be_bytes(), "the packet is at this offset");
    assert_eq!(
        (&document["clocks"], &document["from_guest_us"], &document["fabric_ahead_us"]),
        (&"agree".into(), &20.0.into(), &Value::Null)
    );
}

#[test]
fn both_files_are_needed_and_read_as_far_as_possible() {
    let files = Files::new();
    write_both(&files, &on_both_sides());
    let whole = capture();
    files.write("cut.pcap", &whole[..whole.len() - 60]);
    let printed = files.vcc("read --both cut.pcap fabric.pcap --json");
    assert_eq!(printed.code, 3, "{}", printed.stderr);
    assert!(printed.stderr.starts_with("vcc: cut.pcap, byte "), "{}", printed.stderr);
    let document: Value = serde_json::from_str(&printed.stdout).expect("JSON");
    assert_eq!(document["total"]["pairs"], 47);
    assert_eq!(document["total"]["only_from_guest"]["fabric"]["segments"], 1);
    assert_eq!(document["files"][0]["problems"].as_array().map(Vec::len), Some(1));

    let complaint = files.vcc("read --both cut.pcap nowhere.pcap").complaint(1);
    assert!(complaint.starts_with("cannot open nowhere.pcap: "), "{complaint}");
    let complaint = files.vcc("read --both - -").complaint(1);
    assert!(complaint.contains("name a file for one of them"), "{complaint}");
    let complaint = files.vcc("read --both guest.pcap").complaint(1);
    assert!(complaint.contains("does not have both sides of a port"), "{complaint}");
    let complaint = files.vcc("read guest.pcap --device tap1").complaint(1);
    assert!(complaint.contains("add --policy FILE"), "{complaint}");
    for (arguments, expected) in [
        ("read guest.pcap --both guest.pcap fabric.pcap", "cannot be used with"),
        ("read --both guest.pcap fabric.pcap --underlay dctcp", "cannot be used with"),
        ("read --both guest.pcap fabric.pcap --top 3", "cannot be used with"),
        ("read --both guest.pcap fabric.pcap --sort rate", "cannot be used with"),
        ("read --both guest.pcap fabric.pcap --explain", "cannot be used with"),
    ] {
        let complaint = files.vcc(arguments).complaint(2);
        assert!(complaint.contains(expected), "{arguments}: {complaint}");
    }
}

/// A guest whose window grows by a segment a round trip, and that halves it six times for ECN.
fn sawtooth() -> Vec<Timed<Vec<u8>>> {
    const RTT_NS: u64 = 20_000_000;
    const APART_NS: u64 = 10_000;
    let [guest, peer]: [SocketAddr; 2] = [GUEST, PEER].map(|end| end.parse().expect("an end"));
    let (mut packets, mut now_ns) = (Vec::new(), EPOCH_NS);
    let mut put = |now_ns: u64, packet: Packet| packets.push((now_ns, packet.frame()));
    let options = options::join(&[options::mss(MSS_BYTES as u16)]);
    let syn = Packet { options: options.clone(), ack: 0, ..Packet::new(guest, peer) };
    put(now_ns, Packet { flags: SYN | ECE | CWR, ..syn });
    now_ns += RTT_NS;
    let accepted = Packet { options, seq: 5000, ack: 1, ..Packet::new(peer, guest) };
    put(now_ns, Packet { flags: SYN | ACK | ECE, ..accepted });
    let from_guest = |seq| Packet { seq, ack: 5001, ..Packet::new(guest, peer) };
    let from_peer = |ack| Packet { seq: 5001, ack, window: 60_000, ..Packet::new(peer, guest) };
    put(now_ns + APART_NS, from_guest(1));
    let (mut seq, mut window_segs, mut reduces) = (1, 20, false);
    for _ in 0..6 * 21 {
        now_ns += RTT_NS;
        for segment in 0..window_segs {
            let flags = if reduces && segment == 0 { ACK | CWR } else { ACK };
            let data = Packet { flags, payload: payload(MSS_BYTES), ..from_guest(seq) };
            seq += MSS_BYTES as u32;
            put(now_ns + APART_NS * u64::from(segment), Packet { traffic_class: 2, ..data });
        }
        reduces = window_segs == 40;
        let flags = if reduces { ACK | ECE } else { ACK };
        now_ns += RTT_NS;
        for segment in 0..window_segs {
            let acked = (window_segs - segment - 1) * MSS_BYTES as u32;
            put(now_ns + APART_NS * u64::from(segment), Packet { flags, ..from_peer(seq - acked) });
        }
        window_segs = if reduces { window_segs / 2 } else { window_segs + 1 };
    }
    packets
}

#[test]
fn the_guests_own_congestion_control_is_guessed() {
    let files = Files::new();
    files.write("a.pcap", &pcap(Style::default(), 1, &sawtooth()));
    files.write("b.pcap", &capture());
    let text = files.vcc("read a.pcap b.pcap").well();
    assert!(cells(text.lines().next().expect("a header")).contains(&"OVERLAY"), "{text}");
    let rows = files.vcc("read a.pcap b.pcap --json").well();
    let rows: Value = serde_json::from_str(&rows).expect("JSON");
    let [a, b] = [0, 1].map(|at| &rows["flows"][at]);
    assert_eq!((&a["overlay"], &b["overlay"]), (&"reno-like".into(), &"unknown".into()), "{a}");
    let sure = a["overlay_confidence"].as_f64().expect("a number");
    assert!((0.5..=1.0).contains(&sure), "{sure}");
    let explained = files.vcc("read a.pcap --explain").well();
    assert!(explained.contains("Why this overlay"), "{explained}");
}

#[test]
fn connections_are_sorted_by_what_a_file_shows_of_them() {
    let files = Files::new();
    files.write("a.pcap", &pcap(Style::default(), 1, &sawtooth()));
    files.write("b.pcap", &capture());
    let first = |order: &str| {
        let text = files.vcc(&format!("read b.pcap a.pcap --json --top 1 {order}")).well();
        let document: Value = serde_json::from_str(&text).expect("JSON");
        document["flows"][0]["port"].as_str().expect("a name").to_owned()
    };
    for (order, expected) in [
        ("--sort sent", "a.pcap"),
        ("--sort sent --reverse", "b.pcap"),
        ("--sort overlay", "a.pcap"),
        ("--sort overlay --reverse", "b.pcap"),
        ("--sort retransmissions", "b.pcap"),
        ("", "a.pcap"),
        ("--reverse", "b.pcap"),
    ] {
        assert_eq!(first(order), expected, "{order}");
    }
    let complaint = files.vcc("read a.pcap --sort lives").complaint(2);
    assert!(complaint.contains("lost-upstream"), "{complaint}");
}

fn rows_of(document: &Value, of: &str) -> Vec<Value> {
    document[of].as_array().expect("rows").clone()
}

#[test]
fn each_end_is_the_guest_in_turn() {
    let files = Files::new();
    files.write("a.pcap", &capture());
    let read = |options: &str| {
        let text = files.vcc(&format!("read a.pcap --each-end --json {options}")).well();
        serde_json::from_str::<Value>(&text).expect("JSON")
    };
    let document = read("--sort sent");
    let seen: Vec<_> = rows_of(&document, "flows")
        .iter()
        .map(|row| {
            let second = row["is_second_view"].as_bool();
            (row["guest"].to_string(), second, row["sent_bytes"].as_u64())
        })
        .collect();
    let [guest, peer] = [GUEST, PEER].map(|end| format!("\"{end}\""));
    assert_eq!(seen, [(guest, Some(false), Some(20_001)), (peer, Some(true), Some(1))]);
    let file = &document["files"][0];
    assert_eq!((&file["connections"], &file["segments"]), (&1.into(), &48.into()));
    assert_eq!((&file["captured_at"], &file["captured_at_by"]), (&"guest".into(), &1.into()));
    for (options, guest) in [
        ("--peer 192.0.2.9", GUEST),
        ("--peer 10.0.0.2", PEER),
        ("--with retransmissions", GUEST),
        ("--underlay dctcp --sort sent --reverse --top 1", PEER),
        ("--guest :80 --peer 10.0.0.0/8", PEER),
    ] {
        let document = read(options);
        assert_eq!(document["flows"][0]["guest"], guest, "{options}");
        assert_eq!(rows_of(&document, "flows").len(), 1, "{options}");
    }
    let explained = files.vcc("read a.pcap --each-end --explain").well();
    for part in [
        "10.0.0.2:40000 to 192.0.2.9:80, in a.pcap:\n",
        "192.0.2.9:80 to 10.0.0.2:40000, in a.pcap:\n",
        " 48 TCP segments, 1 connection\n",
    ] {
        assert!(explained.contains(part), "{part}: {explained}");
    }
    let drawn = files.vcc("read a.pcap --each-end --guest :40000 --plot a.svg").well();
    assert!(drawn.ends_with("10.0.0.2:40000 - 192.0.2.9:80 drawn: a.svg\n"), "{drawn}");
    let several = files.vcc("read a.pcap --each-end --plot a.svg");
    assert!(several.stderr.contains("name one"), "{}", several.stderr);
    files.write(
        "p.toml",
        b"[[ports]]\ndevice = \"tap1\"\n[[rules]]\nname = \"web\"\npeer_port = 80\nunderlay = \"cubic\"\n",
    );
    let text = files.vcc("read a.pcap --each-end --policy p.toml").well();
    for part in ["rule web, cubic in enforce mode: 1 end\n", "rule default, "] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(files.vcc("read --each-end --both a.pcap a.pcap").code, 2);
}

/// One connection from each host to the other, and one within a host.
#[test]
fn pairs_of_hosts_count_nothing_twice() {
    let files = Files::new();
    let mut packets = connection();
    for ends in [["192.0.2.9:41000", "10.0.0.2:80"], ["10.0.0.2:42000", "10.0.0.2:81"]] {
        let [guest, peer] = ends.map(|end| end.parse().expect("an end"));
        packets.extend(frames(&talk(guest, peer)));
    }
    packets.sort_by_key(|(time_ns, _)| *time_ns);
    files.write("a.pcap", &pcap(Style::default(), 1, &packets));
    let pairs = |options: &str| {
        let text = files.vcc(&format!("read a.pcap --hosts --json {options}")).well();
        let document: Value = serde_json::from_str(&text).expect("JSON");
        let number = |row: &Value, key: &str| row[key].as_u64().expect("a number");
        let mut rows: Vec<_> = rows_of(&document, "hosts")
            .iter()
            .map(|row| {
                let ends = ["guest", "peer"].map(|end| row[end].as_str().unwrap_or("").to_owned());
                (ends, number(row, "connections"), number(row, "sent_bytes"))
            })
            .collect();
        rows.sort();
        rows
    };
    let [one, other] = ["10.0.0.2", "192.0.2.9"].map(str::to_owned);
    let row = |guest: &String, peer: &String, connections, sent_bytes| {
        ([guest.clone(), peer.clone()], connections, sent_bytes)
    };
    let rows = |sent_bytes| {
        [
            row(&one, &one, 1, sent_bytes),
            row(&one, &other, 1, sent_bytes),
            row(&other, &one, 1, sent_bytes),
        ]
    };
    assert_eq!(pairs(""), rows(20_001));
    assert_eq!(pairs("--each-end"), rows(20_002), "the FINs of the peers");
}

#[test]
fn bytes_that_the_capture_has_lost_of_each_end() {
    let files = Files::new();
    let [guest, peer]: [SocketAddr; 2] = [GUEST, PEER].map(|end| end.parse().expect("an end"));
    let mut packets = talk(guest, peer);
    packets.retain(|(_, packet)| packet.seq != 10_001);
    files.write("a.pcap", &pcap(Style::default(), 1, &frames(&packets)));
    for (guest, column, cell) in
        [(":40000", "MISSING", "1000 B"), (":80", "PEER'S-MISSING", "1000 B")]
    {
        let text = files.vcc(&format!("read a.pcap --guest {guest}")).well();
        let at = cells(text.lines().next().expect("a header")).iter().position(|it| *it == column);
        let at = at.unwrap_or_else(|| panic!("no {column}: {text}"));
        assert_eq!(cells(text.lines().nth(1).expect("a row"))[at], cell, "{text}");
    }
    let text = files.vcc("read a.pcap --hosts --guest :80 --json").well();
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let pair = &document["hosts"][0];
    assert_eq!((&pair["missing_bytes"], &pair["peer_missing_bytes"]), (&0.into(), &1000.into()));
}
