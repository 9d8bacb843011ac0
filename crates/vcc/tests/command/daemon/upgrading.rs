//! What another version of vcc has pinned, with maps of another layout, and what becomes of it. Two real
//! versions are tested by scripts/check-upgrade.sh.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use vcc_port::{Host, Port, counters};
use vcc_testing::{EndOnDrop, guest, ip, on_a_host};

use super::restarting::bounded;
use super::{POLICY, Place};
use crate::vcc;
use crate::wire::{connect, exchange};

/// Not more is pinned than there was.
fn pins() -> Vec<String> {
    let pins = fs::read_dir("/sys/fs/bpf/vcc").expect("pins");
    let mut pins: Vec<String> = pins
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect();
    pins.sort();
    pins
}

/// The one connection, translated as before.
#[track_caller]
fn scales() -> (u8, u8) {
    let port = Port::open("port").expect("open");
    let flows = port.flows().expect("flows");
    assert_eq!(flows.len(), 1);
    assert!(flows[0].depends_on_translation());
    assert_eq!(port.counters().expect("counters").get(counters::UNKNOWN), 0);
    (flows[0].state.wscale_peer, flows[0].state.wscale_shown)
}

#[test]
fn connections_continue_under_load() {
    on_a_host(|| {
        let mounted = Command::new("mount").args(["-t", "bpf", "bpf", "/sys/fs/bpf"]).status();
        assert!(mounted.expect("mount").success());
        let place = Place::new("upgraded", POLICY);
        let guest = guest();
        // With the capabilities of its unit, by which the kernel's own description cannot be read.
        let mut daemon = place.run_by(bounded(&place.command()));
        daemon.is_ready();
        let (mut one, mut other) = connect(&guest);
        exchange(&mut one, &mut other);
        let (before, pinned) = (scales(), pins());
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let end = EndOnDrop(&over);
            let transfer = scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    exchange(&mut one, &mut other);
                }
            });
            for round in 0..2 {
                daemon.kill();
                Host::make_foreign(true).expect("foreign");
                daemon = place.run_by(bounded(&place.command()));
                daemon.wait_for_log(
                    "port: taken over from another version of vcc, with 1 connection",
                );
                daemon.is_ready();
                assert_eq!((scales(), pins()), (before, pinned.clone()), "round {round}");
            }
            drop(end);
            transfer.join().expect("a transfer");
        });
        let port = Port::open("port").expect("open");
        assert_eq!(
            u32::from(port.flows().expect("flows")[0].state.epoch),
            2,
            "judged by the policy"
        );
        assert_eq!(place.ports(), [("port".to_owned(), 0)]);
        // The underlay begins anew, and new connections as well.
        exchange(&mut one, &mut other);
        let (mut third, mut fourth) = connect(&guest);
        exchange(&mut third, &mut fourth);
        assert_eq!(port.flows().expect("flows").len(), 2);
        drop((one, other, third, fourth));
        vcc("detach --all --wait").well();
    });
}

/// It takes the privilege to read the kernel's own description.
#[test]
fn a_version_without_a_description_is_read_by_the_kernels() {
    on_a_host(|| {
        let place = Place::new("undescribed", POLICY);
        let guest = guest();
        let mut daemon = place.run();
        daemon.is_ready();
        let (mut one, mut other) = connect(&guest);
        exchange(&mut one, &mut other);
        let before = scales();
        daemon.kill();
        Host::make_foreign(false).expect("foreign");
        let complaint = vcc("export port").complaint(1);
        assert!(complaint.contains("by another version"), "{complaint}");
        let complaint = vcc("upgrade").complaint(1);
        assert!(complaint.contains("start `vcc run`"), "{complaint}");
        let daemon = place.run();
        daemon.wait_for_log("port: taken over from another version of vcc, with 1 connection");
        daemon.is_ready();
        exchange(&mut one, &mut other);
        assert_eq!(scales(), before);
        drop((one, other));
        vcc("detach --all --wait").well();
    });
}

/// Draining ports keep draining, and those that were attached by hand belong to no policy.
#[test]
fn ports_stay_what_they_were() {
    on_a_host(|| {
        let guest = guest();
        vcc("attach port --underlay dctcp --window-cap 400k --guest-ecn override --emit").well();
        let (mut one, mut other) = connect(&guest);
        exchange(&mut one, &mut other);
        assert!(vcc("detach port").well().contains("draining"));
        ip("link add port2 type veth peer name guest2");
        vcc("attach port2 --mode shadow").well();
        let options = |device: &str| {
            let port = Port::open(device).expect("open");
            (port.params().expect("parameters"), port.max_flows().expect("a limit"))
        };
        let before = ["port", "port2"].map(options);
        Host::make_foreign(true).expect("foreign");
        let complaint = vcc("attach port2").complaint(1);
        assert!(complaint.contains("`vcc upgrade` takes its connections over"), "{complaint}");
        let printed = vcc("upgrade").well();
        assert_eq!(
            printed,
            "port2: taken over, with 0 connection(s)\nport: taken over, with 1 connection(s)\n"
        );
        assert_eq!(["port", "port2"].map(options), before);
        scales();
        assert!(vcc("detach port").well().contains("draining"));
        exchange(&mut one, &mut other);
        drop((one, other));
        vcc("detach --all --wait").well();
        assert_eq!(vcc("upgrade").well(), "vcc is attached nowhere\n");
    });
}

#[test]
fn a_port_of_this_version_gets_its_programs() {
    on_a_host(|| {
        ip("link add port1 type veth peer name guest1");
        vcc("attach port1").well();
        assert_eq!(vcc("upgrade").well(), "port1 is of this version\n");
        Host::open().expect("a host").make_stale().expect("stale");
        assert_eq!(vcc("upgrade").well(), "port1 has the programs of this version now\n");
    });
}

/// As on a host whose guests are all off during the upgrade.
#[test]
fn a_policy_without_ports_does_not_outlive_its_version() {
    on_a_host(|| {
        let place =
            Place::new("idle", "[[ports]]\ndevice = \"none*\"\n[default]\nunderlay = \"dctcp\"\n");
        let mut daemon = place.run();
        daemon.is_ready();
        daemon.kill();
        Host::make_foreign(true).expect("foreign");
        let mut daemon = place.run();
        daemon.is_ready();
        daemon.kill();
        Host::make_foreign(true).expect("foreign");
        ip("link add port1 type veth peer name guest1");
        vcc("attach port1").well();
    });
}

/// A process that was killed when it had moved some ports, or when only its own pins were left to remove.
#[test]
fn what_was_begun_is_ended() {
    on_a_host(|| {
        let guest = guest();
        vcc("attach port").well();
        let (mut one, mut other) = connect(&guest);
        exchange(&mut one, &mut other);
        let before = scales();
        Host::make_foreign(true).expect("foreign");
        let next = Path::new("/sys/fs/bpf/vcc/host-next");
        fs::create_dir(next).expect("a directory");
        assert!(vcc("upgrade").well().contains("port: taken over, with 1 connection(s)"));
        exchange(&mut one, &mut other);
        assert_eq!(scales(), before);
        assert!(!next.exists());
        fs::create_dir(next).expect("a directory");
        assert_eq!(vcc("upgrade").well(), "port is of this version\n");
        assert!(!next.exists());
        drop((one, other));
        vcc("detach --all --wait").well();
    });
}

#[test]
fn what_cannot_be_understood_is_not_touched() {
    on_a_host(|| {
        let place = Place::new("version", POLICY);
        ip("link add port1 type veth peer name guest1");
        let mut daemon = place.run();
        daemon.is_ready();
        daemon.kill();
        let port = pins().into_iter().find(|pin| pin.contains('@')).expect("a port");
        fs::remove_file("/sys/fs/bpf/vcc/host/flows").expect("removed");
        let complaint = place.vcc("run --config FILE").complaint(1);
        assert!(complaint.contains("do not describe where their `flows` is"), "{complaint}");
        assert!(complaint.contains("`vcc detach --now --all`"), "{complaint}");
        assert!(pins().contains(&port));
        vcc("detach --now --all").well();
        place.run().is_ready();
    });
}

/// From each of `VCC_VERSIONS`, paths of their commands, to this one and back, twice, in the middle of
/// transfers each way. scripts/check-upgrade.sh builds them.
#[test]
#[ignore = "takes other versions of the command, which take minutes to build"]
fn from_other_versions_and_back() {
    let versions = std::env::var("VCC_VERSIONS").expect("paths of commands, with `:` between");
    for other in versions.split(':') {
        on_a_host(|| there_and_back(other));
    }
}

fn there_and_back(other: &str) {
    let place = Place::new("versions", POLICY);
    let guest = guest();
    let run_other = || place.run_by(place.knowing(Command::new(other)));
    let mut daemon = run_other();
    daemon.is_ready();
    let (mut one, mut other_end) = connect(&guest);
    exchange(&mut one, &mut other_end);
    let over = AtomicBool::new(false);
    let mut ways = Vec::new();
    let exchanges = std::thread::scope(|scope| {
        let end = EndOnDrop(&over);
        let transfer = scope.spawn(|| {
            let mut exchanges = 0;
            while !over.load(Ordering::Relaxed) {
                exchange(&mut one, &mut other_end);
                exchanges += 1;
            }
            exchanges
        });
        let mut scales_before = None;
        for _ in 0..2 {
            daemon.kill();
            daemon = place.run();
            ways.push(way(&daemon.wait_for_log("port: ")));
            daemon.is_ready();
            let now = scales();
            assert_eq!(*scales_before.get_or_insert(now), now);

            daemon.kill();
            daemon = run_other();
            match daemon.log_before_its_end("port: ") {
                Some(printed) => ways.push(way(&printed)),
                // It has another layout, and takes nothing over.
                None => {
                    daemon = by_file(&place, other);
                    ways.push("by a file");
                }
            }
            daemon.is_ready();
        }
        drop(end);
        transfer.join().expect("a transfer")
    });
    exchange(&mut one, &mut other_end);
    // A new one is as good.
    let (mut one, mut other_end) = connect(&guest);
    exchange(&mut one, &mut other_end);
    let printed = Command::new(other).arg("--version").output().expect("it runs").stdout;
    let version = String::from_utf8(printed).expect("UTF-8");
    println!(
        "figure: {} ({}): {exchanges} exchanges of 2 MiB, each whole, over {}",
        version.trim(),
        // The sources' directory: DIRECTORY/target/debug/vcc.
        Path::new(other).iter().rev().nth(3).unwrap_or_default().display(),
        ways.join(", ")
    );
}

fn way(printed: &str) -> &'static str {
    if printed.contains("taken over") { "taken over" } else { "adopted" }
}

/// As docs/operating.md describes it.
fn by_file(place: &Place, other: &str) -> super::Daemon {
    let file = place.path("port.export");
    let file = file.to_str().expect("UTF-8");
    vcc(&format!("export port {file}")).well();
    vcc("detach --now --all").well();
    fs::remove_dir_all("/sys/fs/bpf/vcc").expect("nothing is pinned");
    let daemon = place.run_by(place.knowing(Command::new(other)));
    daemon.wait_for_log("port: attached");
    let imported = Command::new(other).args(["import", "port", file]).output().expect("it runs");
    let printed = String::from_utf8(imported.stdout).expect("UTF-8");
    assert!(printed.contains("1 connection taken over"), "{printed}");
    daemon
}
