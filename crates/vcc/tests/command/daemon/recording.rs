//! Records of connections.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use vcc_daemon::{End, Record};
use vcc_testing::{eventually, guest, ip, on_a_host};

use super::{POLICY, Place};
use crate::wire::{connect, ends, exchange};

fn records(path: &Path) -> Vec<Record> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_str(line).expect(line)).collect()
}

#[test]
fn a_connection_is_recorded_when_it_has_ended() {
    on_a_host(|| {
        const MIB: u64 = 1 << 20;
        let guest = guest();
        let place = Place::new("records", POLICY);
        let file = place.path("records.json");
        let daemon = place.run_and(&["--records", file.to_str().expect("UTF-8")]);
        daemon.is_ready();
        eventually("a port", || !place.ports().is_empty());
        let (mut living, mut other) = connect(&guest);
        exchange(&mut living, &mut other);
        let (mut here, mut there) = connect(&guest);
        let [guest_end, peer_end] = ends(&here);
        for _ in 0..3 {
            exchange(&mut here, &mut there);
        }
        assert!(records(&file).is_empty(), "both live");
        drop((here, there));
        eventually("a record", || !records(&file).is_empty());
        let [record] = &records(&file)[..] else { panic!("more than one record") };
        assert_eq!((&record.guest, &record.peer), (&guest_end, &peer_end));
        assert_eq!((&*record.port, record.tenant.as_deref()), ("port", Some("acme")));
        assert_eq!(record.underlay.as_deref(), Some("dctcp"));
        assert_eq!((record.end, record.is_whole), (End::Closed, true));
        assert_eq!(record.acked_bytes, 3 * MIB, "{record:?}");
        assert!(record.srtt_us.is_some() && record.mss_bytes.is_some(), "{record:?}");
        let status = place.status();
        assert_eq!(status["records"]["written"], 1, "{status}");
        assert_eq!(status["records"]["lost"], 0, "{status}");
        let text = place.vcc("status").well();
        assert!(text.contains("records: 1 in "), "{text}");
        let page = place.path("page.html");
        let [file_text, page_text] = [&file, &page].map(|path| path.to_str().expect("UTF-8"));
        let report = place.vcc(&format!("report {file_text} --since 1h --html {page_text}")).well();
        assert!(report.contains("acme            1  3.00 MiB"), "{report}");
        assert!(fs::read_to_string(&page).expect("a page").contains("<h2>acme</h2>"));
        let by_guest = place.vcc(&format!("report {file_text} --by guest --json")).well();
        let by_guest: Value = serde_json::from_str(&by_guest).expect("JSON");
        assert_eq!(by_guest["groups"][0]["name"], "192.0.2.1", "{by_guest}");
        let nothing = place.vcc(&format!("report {file_text} --until 2020-01-01")).complaint(1);
        assert!(nothing.contains("no records, or none of that time"), "{nothing}");
        // The port forgets what it has.
        ip("link del port");
        eventually("another record", || records(&file).len() == 2);
        assert_eq!(records(&file)[1].end, End::Forgotten);
    });
}

#[test]
fn a_restart_of_the_daemon_loses_no_record() {
    on_a_host(|| {
        let guest = guest();
        let place = Place::new("restart", POLICY);
        let file = place.path("records.json");
        let options = ["--records", file.to_str().expect("UTF-8")];
        let daemon = place.run_and(&options);
        daemon.is_ready();
        eventually("a port", || !place.ports().is_empty());
        let transfer = || {
            let (mut here, mut there) = connect(&guest);
            exchange(&mut here, &mut there);
        };
        transfer();
        daemon.signal(libc::SIGTERM);
        assert_eq!(daemon.end(), 0);
        assert_eq!(records(&file).len(), 1, "the last read");
        transfer();
        let daemon = place.run_and(&options);
        daemon.is_ready();
        eventually("what ended in between", || records(&file).len() == 2);
        // A renamed device keeps its connections, and one that nobody accepts has an end of its own.
        let (mut here, mut there) = connect(&guest);
        exchange(&mut here, &mut there);
        ip("link set port name port2");
        let refused = guest.inside(|| TcpStream::connect("192.0.2.2:9")).expect("inside");
        refused.expect_err("nobody listens");
        eventually("the refused one", || records(&file).len() == 3);
        assert_eq!(records(&file)[2].end, End::Unused);
        drop((here, there));
        eventually("the last one", || records(&file).len() == 4);
        assert_eq!(records(&file)[3].port, "port2");
    });
}

#[test]
fn a_full_disk_loses_records_and_nothing_else() {
    on_a_host(|| {
        let guest = guest();
        let place = Place::new("full", POLICY);
        let disk = place.path("disk");
        fs::create_dir(&disk).expect("a directory");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"]).arg(&disk);
        assert!(mount.status().expect("mount").success());
        let file = disk.join("records.json");
        let daemon = place.run_and(&["--records", file.to_str().expect("UTF-8")]);
        daemon.is_ready();
        eventually("a port", || !place.ports().is_empty());
        let filler = disk.join("filler");
        fs::write(&filler, vec![0; 128 << 10]).expect_err("it is full");
        let end_one = || {
            let (mut here, mut there) = connect(&guest);
            exchange(&mut here, &mut there);
        };
        end_one();
        let complaint = daemon.wait_for_log("records cannot be written to ");
        assert!(complaint.contains("No space left on device"), "{complaint}");
        end_one();
        let lost = || place.status()["records"]["lost"].as_u64().expect("a number");
        eventually("two lost records", || lost() == 2);
        let failure = place.status()["records"]["failure"].clone();
        assert!(failure.as_str().is_some_and(|it| it.contains("No space left")), "{failure}");
        let shown = place.vcc("status").well();
        assert!(shown.contains("2 lost; none can be written now: No space left"), "{shown}");
        fs::remove_file(&filler).expect("removed");
        end_one();
        let again = daemon.wait_for_log("records are written to ");
        assert!(again.contains(" again; 2 were lost"), "{again}");
        assert_eq!(records(&file).len(), 1);
        eventually("no failure", || place.status()["records"]["failure"].is_null());
        let mut unmount = Command::new("umount");
        assert!(unmount.arg("-l").arg(&disk).status().expect("umount").success());
    });
}

#[test]
fn records_that_cannot_be_written_are_refused_at_start() {
    on_a_host(|| {
        let place = Place::new("refused", POLICY);
        let daemon = place.run_and(&["--records", "/nowhere/records.json"]);
        let refusal = daemon.wait_for_log("write records to /nowhere/records.json");
        assert!(refusal.contains("No such file or directory"), "{refusal}");
        assert_eq!(daemon.end(), 1);
        for (options, part) in [
            ("--records a --records-share 0", "must be a number above 0 and at most 1"),
            ("--records-kept 3", "--records <FILE>"),
        ] {
            let refusal = place.vcc(&format!("run {options}"));
            assert_eq!(refusal.code, 2, "{}", refusal.stderr);
            assert!(refusal.stderr.contains(part), "{}", refusal.stderr);
        }
    });
}

/// The CPU time of the daemon's thread that records, in ns.
fn cpu_ns(process: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{process}/task")).expect("threads");
    let mut threads = threads.map(|thread| thread.expect("a thread").path());
    let is_it = |thread: &PathBuf| {
        fs::read_to_string(thread.join("comm")).is_ok_and(|name| name.trim() == "records")
    };
    let thread = threads.find(is_it).expect("the thread that records");
    let times = fs::read_to_string(thread.join("schedstat")).expect("times");
    times.split(' ').next().and_then(|ns| ns.parse().ok()).expect("a number")
}

/// Two threads open and close connections at a rate of 5,000 a second, if the CPUs suffice: each
/// connection has a record. At twice the rate, the port would have no room for some of them.
#[test]
#[ignore = "a measurement"]
fn records_cost_little() {
    on_a_host(|| {
        const SECONDS: u64 = 20;
        const EACH: Duration = Duration::from_micros(2 * 200);
        let guest = guest();
        let place = Place::new("cost", POLICY);
        let file = place.path("records.json");
        let daemon = place.run_and(&["--records", file.to_str().expect("UTF-8")]);
        daemon.is_ready();
        eventually("a port", || !place.ports().is_empty());
        let before_ns = cpu_ns(daemon.child.id());
        let begun = Instant::now();
        let connections: u64 = thread::scope(|scope| {
            let open = |_| {
                let mut count = 0;
                while begun.elapsed() < Duration::from_secs(SECONDS) {
                    drop(connect(&guest));
                    count += 1;
                    thread::sleep((EACH * count).saturating_sub(begun.elapsed()));
                }
                u64::from(count)
            };
            let threads: Vec<_> = (0..2).map(|number| scope.spawn(move || open(number))).collect();
            threads.into_iter().map(|thread| thread.join().expect("connections")).sum()
        });
        let passed_s = begun.elapsed().as_secs_f64();
        let cpu_s = (cpu_ns(daemon.child.id()) - before_ns) as f64 / 1e9;
        // The last ones are read within a second.
        thread::sleep(Duration::from_secs(3));
        let status = place.status();
        let [written, lost] =
            ["written", "lost"].map(|key| status["records"][key].as_u64().expect("a number"));
        assert_eq!((written, lost), (connections, 0));
        let (per_s, share) = (connections as f64 / passed_s, cpu_s / passed_s);
        println!(
            "figure: {per_s:.0} connections a second, each with a record: {share:.3} of a CPU, {:.1} us for each",
            cpu_s / connections as f64 * 1e6
        );
    });
}
