//! `vcc bundle`: what is in the file, what is not, and what happens where something cannot be had.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use flate2::read::GzDecoder;
use serde_json::Value;
use tempfile::TempDir;
use vcc_testing::{eventually, guest, ip, on_a_host};

use crate::daemon::Place;
use crate::daemon::watching::get;
use crate::wire::{connect, ends, exchange};
use crate::{CommandOutput, command, vcc};

const POLICY: &str = "# asked for by 198.51.100.77\n[[ports]]\ndevice = \"port*\"\ntenant = \"acme\"\n\
                      [[rules]]\nname = \"web\"\npeer = \"192.0.2.2\"\nunderlay = \"dctcp\"\n\
                      [default]\nunderlay = \"reno-ecn\"\n";

/// The texts of a bundle by their names, without the directory.
fn unpacked(bytes: &[u8]) -> BTreeMap<String, String> {
    let mut archive = tar::Archive::new(GzDecoder::new(bytes));
    let mut files = BTreeMap::new();
    let mut directories = BTreeMap::new();
    for entry in archive.entries().expect("an archive") {
        let mut entry = entry.expect("an entry");
        let path = entry.path().expect("a path").to_str().expect("UTF-8").to_owned();
        let (directory, name) = path.split_once('/').expect("a directory");
        let mut text = String::new();
        entry.read_to_string(&mut text).expect("UTF-8");
        directories.insert(directory.to_owned(), ());
        files.insert(name.to_owned(), text);
    }
    assert_eq!(directories.len(), 1, "{directories:?}");
    files
}

fn read(path: &Path) -> BTreeMap<String, String> {
    unpacked(&fs::read(path).expect("a bundle"))
}

/// What is missing only for the machine on which the test runs.
fn without_logs(problems: &str) -> String {
    let is_of_log = |line: &&str| line.contains("journal.txt") || line.contains("kernel.txt");
    problems.lines().filter(|line| !is_of_log(line)).map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_bundle_has_all_of_a_port_under_a_daemon() {
    on_a_host(|| {
        let guest = guest();
        ip("link set lo up");
        let place = Place::new("bundle", POLICY);
        let daemon = place.run_at("127.0.0.1:0");
        daemon.is_ready();
        let line = daemon.wait_for_log("web page at http://");
        let (_, address) = line.split_once("http://").expect("an address");
        let address = address.trim_end_matches('/');
        let (mut here, mut there) = connect(&guest);
        exchange(&mut here, &mut there);
        // An answer may be from before the attachment.
        let has_port = || get(address, "/metrics").1.contains("vcc_port_flows_max{");
        eventually("the metrics have the port", has_port);
        fs::write(place.path("run/verifier.log"), "refused\n").expect("a log");
        let directory = TempDir::new().expect("a directory");
        let path = directory.path().join("bundle.tar.gz");
        let written = place.vcc(&format!("bundle {}", path.display()));
        assert_eq!(written.code, 0, "{}", written.stderr);
        assert!(written.stdout.starts_with(&format!("wrote {}: ", path.display())));
        assert!(written.stdout.contains("addresses of guests and peers"), "{}", written.stdout);
        assert_eq!(fs::metadata(&path).expect("a file").mode() & 0o777, 0o600);

        let files = read(&path);
        assert_eq!(without_logs(&files["problems.txt"]), "");
        let said: String =
            files["problems.txt"].lines().map(|line| format!("vcc: {line}\n")).collect();
        assert_eq!(written.stderr, said);
        let is_sought =
            |name: &&String| !name.starts_with("journal") && !name.starts_with("kernel");
        let names: Vec<&str> = files.keys().filter(is_sought).map(String::as_str).collect();
        let expected = [
            "MANIFEST.txt",
            "counters.txt",
            "devices/port.txt",
            "doctor.txt",
            "flows.json",
            "metrics.txt",
            "policy.toml",
            "policy.txt",
            "ports.json",
            "ports.txt",
            "problems.txt",
            "status.json",
            "status.txt",
            "verifier.txt",
            "versions.txt",
        ];
        assert_eq!(names, expected);
        for (name, text) in files.iter().filter(|(name, _)| *name != "MANIFEST.txt") {
            let line = format!("{:>10}  {name} ", text.len());
            assert!(files["MANIFEST.txt"].contains(&line), "{line}: {}", files["MANIFEST.txt"]);
        }
        let flows: Value = serde_json::from_str(&files["flows.json"]).expect("JSON");
        let [guests_end, peer] = ends(&here);
        assert_eq!((&flows[0]["guest"], &flows[0]["peer"]), (&guests_end.into(), &peer.into()));
        assert_eq!((&flows[0]["rule"], &flows[0]["tenant"]), (&"web".into(), &"acme".into()));
        let status: Value = serde_json::from_str(&files["status.json"]).expect("JSON");
        assert_eq!(status["ports"][0]["device"], "port");
        let ports: Value = serde_json::from_str(&files["ports.json"]).expect("JSON");
        assert_eq!(ports[0]["flows"], 1);
        assert_eq!(files["policy.toml"], POLICY);
        for (name, part) in [
            ("versions.txt", "vcc 0."),
            ("versions.txt", "\nLinux "),
            ("doctor.txt", "To attach to ports:\n"),
            ("devices/port.txt", "On port:\n"),
            ("status.txt", "acme"),
            ("policy.txt", "web"),
            ("ports.txt", "port: by rule"),
            ("counters.txt", "  not_tcp  "),
            ("metrics.txt", "vcc_port_flows_max{device=\"port\",tenant=\"acme\"} "),
        ] {
            assert!(files[name].contains(part), "{part} is not in {name}: {}", files[name]);
        }
    });
}

/// All addresses of IPv4 in a text.
fn addresses(text: &str) -> impl Iterator<Item = IpAddr> + '_ {
    let words = text.split(|c: char| !(c.is_ascii_digit() || c == '.'));
    words.filter_map(|word| word.trim_matches('.').parse().ok())
}

#[test]
fn an_anonymous_bundle_has_no_address_of_the_host() {
    on_a_host(|| {
        let guest = guest();
        ip("link set lo up");
        let place = Place::new("bundle", POLICY);
        let daemon = place.run_at("192.0.2.2:0");
        daemon.is_ready();
        let (mut here, mut there) = connect(&guest);
        exchange(&mut here, &mut there);
        let written = place.command_in(&place.path("run"), &["bundle", "--anonymous"]);
        assert_eq!(written.code, 0, "{}", written.stderr);
        let path = written.stdout.split_whitespace().nth(1).and_then(|word| word.strip_suffix(':'));
        let name = path.expect("the name of the file").to_owned();
        let is_anonymous = name.starts_with("vcc-bundle-anonymous-") && name.ends_with(".tar.gz");
        assert!(is_anonymous, "{name}");
        let files = read(&place.path("run").join(name));
        let originals = ["192.0.2.1", "192.0.2.2", "198.51.100.77"];
        let originals = originals.map(|address| address.parse::<IpAddr>().expect("an address"));
        for (name, text) in &files {
            for address in addresses(text) {
                assert!(!originals.contains(&address), "{address} is in {name}: {text}");
            }
        }
        assert!(files.contains_key("metrics.txt"), "{}", files["problems.txt"]);
        // The same guest and peer everywhere, with their TCP ports.
        let flows: Value = serde_json::from_str(&files["flows.json"]).expect("JSON");
        let end = |key: &str| -> SocketAddr {
            flows[0][key].as_str().expect("an end").parse().expect("an end")
        };
        assert_eq!(end("guest").port(), here.local_addr().expect("an end").port());
        let of_rule = format!("peer = \"{}\"\n", end("peer").ip());
        assert!(files["policy.toml"].contains(&of_rule), "{}", files["policy.toml"]);
    });
}

#[test]
fn what_cannot_be_collected_is_no_failure() {
    on_a_host(|| {
        let guest = guest();
        vcc("attach port").well();
        let (mut here, mut there) = connect(&guest);
        exchange(&mut here, &mut there);
        // Without a daemon.
        let directory = TempDir::new().expect("a directory");
        let path = directory.path().join("bundle.tar.gz");
        let written = vcc(&format!("bundle {}", path.display()));
        assert_eq!(written.code, 0, "{}", written.stderr);
        let files = read(&path);
        for missing in ["status.txt, status.json", "policy.toml, policy.txt"] {
            let line = format!("{missing}: not collected: no daemon listens at ");
            assert!(files["problems.txt"].contains(&line), "{}", files["problems.txt"]);
            assert!(written.stderr.contains(&line), "{}", written.stderr);
        }
        assert_eq!(without_logs(&files["problems.txt"]).lines().count(), 2);
        assert!(files["ports.txt"].starts_with("port: reno-ecn, enforce, 1 of 65536 connections"));
        assert!(!files.contains_key("metrics.txt") && files.contains_key("devices/port.txt"));

        // As a user who may not read the ports.
        fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).expect("permitted");
        let path = directory.path().join("user.tar.gz");
        let binary = directory.path().join("vcc");
        // By another process, as no test of this one may inherit a file that is open for writing and then run.
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_vcc")).arg(&binary).status();
        assert!(copied.expect("cp").success());
        let mut other = Command::new(binary);
        other.env("RUNTIME_DIRECTORY", directory.path().join("none")).arg("bundle").arg(&path);
        let written = CommandOutput::from(other.uid(65_534).gid(65_534).output().expect("run"));
        assert_eq!(written.code, 0, "{}", written.stderr);
        let files = read(&path);
        for name in ["ports.txt, ports.json, counters.txt: ", "flows.json: ", "policy.toml, "] {
            assert!(files["problems.txt"].contains(name), "{name}: {}", files["problems.txt"]);
        }
        assert!(files.contains_key("doctor.txt") && files.contains_key("versions.txt"));
    });
}

/// Bytes of an archive are no text.
fn to_stdout(arguments: &[&str]) -> Output {
    command().args(arguments).output().expect("the command")
}

#[test]
fn a_bundle_is_written_to_stdout() {
    let Output { status, stdout, .. } = to_stdout(&["bundle", "-"]);
    assert!(status.success());
    assert!(unpacked(&stdout).contains_key("MANIFEST.txt"));
    let terminal = File::options().read(true).write(true).open("/dev/ptmx").expect("a terminal");
    let mut on_terminal = command();
    on_terminal.args(["bundle", "-"]).stdout(terminal);
    let complaint = CommandOutput::from(on_terminal.output().expect("run")).complaint(1);
    assert!(complaint.contains("stdout is a terminal"), "{complaint}");
}

#[test]
fn a_full_disk_is_an_error_with_the_path() {
    let last_line = |output: CommandOutput| {
        assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{}", output.stderr);
        output.stderr.lines().last().expect("a complaint").to_owned()
    };
    let complaint = last_line(vcc("bundle /dev/full"));
    assert!(complaint.starts_with("vcc: cannot write /dev/full: No space left"), "{complaint}");
    let device = fs::metadata("/dev/full").expect("a device").file_type();
    assert!(device.is_char_device(), "it was replaced by a file");
    let complaint = last_line(vcc("bundle /nowhere/bundle.tar.gz"));
    assert!(
        complaint.starts_with("vcc: cannot write /nowhere/bundle.tar.gz: No such file"),
        "{complaint}"
    );
    on_a_host(|| {
        let directory = TempDir::new().expect("a directory");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=4k,nr_inodes=8", "tmpfs"]).arg(directory.path());
        assert!(mount.status().expect("mount").success());
        // It takes one page, so that nothing is left for the bundle.
        fs::write(directory.path().join("full"), [1; 4096]).expect("a page");
        let path = directory.path().join("bundle.tar.gz");
        let complaint = last_line(vcc(&format!("bundle {}", path.display())));
        let expected = format!("vcc: cannot write {}: No space left", path.display());
        assert!(complaint.starts_with(&expected), "{complaint}");
        let left = fs::read_dir(directory.path()).expect("a directory").count();
        assert_eq!(left, 1, "a part of the bundle is left");
        let unmounted = Command::new("umount").arg(directory.path()).status();
        assert!(unmounted.expect("umount").success());
    });
}
