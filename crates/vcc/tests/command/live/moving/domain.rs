//! Connections of a guest behind `vcc domain`: they go with the state of its card.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use tempfile::TempDir;
use vcc_testing::{eventually, skip};

use super::super::{
    Domain, Image, TRANSFER_BYTES, Vm, on_a_host_with_a_tap, port, run, vhost_user,
};
use super::ground::Ground;
use super::hosts::{Hosts, TAPS};
use super::transfers::{from_guest, to_guest};
use super::{cases, floods, moves, report, with_a_newer_qemu};

/// Both hosts with a process in front of the guest.
struct Domains {
    hosts: Hosts,
    directories: [TempDir; 2],
    _domains: [Domain; 2],
}

impl Domains {
    fn start(options: &str) -> Self {
        Self::start_both([options; 2])
    }

    /// Each with its options.
    fn start_both(options: [&str; 2]) -> Self {
        let hosts = Hosts::join();
        let directories = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
        let domain = |host: usize| {
            let socket = directories[host].path().join("socket");
            hosts.on(host, || Domain::start_on(TAPS[host], &socket, options[host]))
        };
        let domains = [domain(0), domain(1)];
        Self { hosts, directories, _domains: domains }
    }

    fn socket(&self, host: usize) -> PathBuf {
        self.directories[host].path().join("socket")
    }

    /// A guest on the first host, with noise to send.
    fn boot(&self, image: &Image) -> Vm {
        let mut vm = Vm::boot(image, &vhost_user(&self.socket(0)), |_| ()).expect("a guest");
        run(&mut vm, "ifconfig eth0 192.0.2.1 netmask 255.255.255.0");
        run(&mut vm, &format!("head -c {TRANSFER_BYTES} /dev/urandom >/tmp/noise"));
        vm
    }

    /// To the other host, which does not take the guest.
    fn fail_to_migrate(&mut self, vm: &mut Vm, image: &Image) -> Instant {
        let to = 1 - self.hosts.at;
        let netdev = vhost_user(&self.socket(to));
        let migrated = self.hosts.on(to, || vm.migrate(image, &netdev, || ()));
        migrated.expect_err("there is no room for all connections");
        Instant::now()
    }

    fn ports(&self, host: usize) -> serde_json::Value {
        port(&self.socket(host))
    }
}

impl Ground for Domains {
    fn migrate(&mut self, vm: &mut Vm, image: &Image) -> Instant {
        let to = 1 - self.hosts.at;
        let netdev = vhost_user(&self.socket(to));
        self.hosts.on(to, || vm.migrate(image, &netdev, || ())).expect("a migration");
        let moved = Instant::now();
        self.hosts.at = to;
        moved
    }

    /// And the host that it has left has nothing of them.
    fn assert_moved(&self) {
        let here = self.ports(self.hosts.at);
        assert_eq!(here["counters"]["unknown"], 0, "{here}");
        assert_eq!(here["counters"]["promise_broken"], 0, "{here}");
        eventually("the host before has forgotten the guest", || {
            let there = self.ports(1 - self.hosts.at);
            (&there["flows"], &there["held_bytes"]) == (&0.into(), &0.into())
        });
    }
}

fn move_with(options: &str) {
    with_a_newer_qemu(|image| {
        let mut domains = Domains::start(options);
        let mut vm = domains.boot(image);
        let silences = (0..moves()).map(|number| {
            let transfer = if number % 4 < 2 { from_guest } else { to_guest };
            let silence = transfer(&mut vm, &mut |vm| domains.migrate(vm, image));
            domains.assert_moved();
            silence
        });
        let silences = silences.collect();
        let what = format!(
            "behind `vcc domain {options}` in transfers of {TRANSFER_BYTES} bytes: each whole, no \
             segment untranslated, no promise broken"
        );
        report(&what, silences);
    });
}

#[test]
#[ignore = "two emulated machines at once: make verify runs it"]
fn what_is_held_moves_with_its_guest() {
    move_with("--act hold --retransmit");
}

#[test]
#[ignore = "two emulated machines at once: make verify runs it"]
fn what_is_promised_moves_with_its_guest() {
    move_with("--act split --receive ring");
}

/// Neither it nor its peer sees more of it than a pause.
#[test]
#[ignore = "two emulated machines at once: make verify runs it"]
fn a_guest_whose_migration_fails_keeps_running_where_it_was() {
    with_a_newer_qemu(|image| {
        let has_room_for_one = "--act split --max-flows 1";
        let mut domains = Domains::start_both(["--act split --receive ring", has_room_for_one]);
        let mut vm = domains.boot(image);
        // One more.
        run(&mut vm, "(nc -l -p 5030 -e cat >/dev/null 2>&1 &)");
        let _idle = cases::connect(5030);
        for transfer in [from_guest, to_guest] {
            transfer(&mut vm, &mut |vm| domains.fail_to_migrate(vm, image));
            let counters = &domains.ports(0)["counters"];
            let wrong = ["unknown", "promise_broken"].map(|name| &counters[name]);
            assert_eq!(wrong, [&serde_json::json!(0); 2], "{counters}");
        }
    });
}

/// Its guest would leave its connections behind.
#[test]
#[ignore = "two emulated machines at once: make verify runs it"]
fn an_older_qemu_refuses_to_migrate() {
    let output = Command::new("qemu-system-x86_64").arg("--version").output();
    let printed = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    if !printed.is_ok_and(|printed| printed.contains("version 7.")) {
        return skip("QEMU 7 is not installed");
    }
    on_a_host_with_a_tap(|image| {
        let domains = Domains::start("--act split");
        let mut vm = domains.boot(image);
        let netdev = vhost_user(&domains.socket(1));
        let migrated = domains.hosts.on(1, || vm.migrate(image, &netdev, || ()));
        let error = migrated.expect_err("no log is offered").to_string();
        assert!(error.contains("VHOST_F_LOG_ALL"), "{error}");
        from_guest(&mut vm, &mut |_| Instant::now());
    });
}

fn move_in_each_case(options: &str) {
    with_a_newer_qemu(|image| {
        let mut domains = Domains::start(options);
        let mut vm = domains.boot(image);
        cases::all(&mut vm, &mut domains, image);
    });
}

#[test]
#[ignore = "two emulated machines at once: make verify runs it"]
fn held_segments_move_in_any_state_of_connections() {
    move_in_each_case("--act hold --retransmit");
}

#[test]
#[ignore = "two emulated machines at once: make verify runs it"]
fn promises_move_in_any_state_of_connections() {
    move_in_each_case("--act split --receive ring");
}

#[test]
#[ignore = "two emulated machines at once: make verify runs it"]
fn goodput_behind_a_domain_is_back_after_a_move() {
    with_a_newer_qemu(|image| {
        let options = "--act split --receive ring";
        let mut domains = Domains::start(options);
        let mut vm = domains.boot(image);
        floods::both(&mut vm, &mut domains, image, &format!("behind `vcc domain {options}`"));
    });
}
