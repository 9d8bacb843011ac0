//! Connections of a guest behind `vcc domain`: they go with the state of its card.

use std::path::PathBuf;
use std::time::Instant;

use tempfile::TempDir;
use vcc_testing::{eventually, skip};

use super::super::{Domain, Image, TRANSFER_BYTES, Vm, at, on_a_host_with_a_tap, run, vhost_user};
use super::hosts::{Hosts, TAPS};
use super::transfers::{from_guest, to_guest};
use super::{moves, tell};
use crate::Said;

/// Both hosts with a process in front of the guest.
struct Domains {
    hosts: Hosts,
    directories: [TempDir; 2],
    _domains: [Domain; 2],
}

impl Domains {
    fn start(options: &str) -> Self {
        let hosts = Hosts::join();
        let directories = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
        let domain = |host: usize| {
            let socket = directories[host].path().join("socket");
            hosts.on(host, || Domain::start_on(TAPS[host], &socket, options))
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

    /// The guest goes to the other host. Returns when it has gone on.
    fn migrate(&mut self, vm: &mut Vm, image: &Image) -> Instant {
        let to = 1 - self.hosts.at;
        let netdev = vhost_user(&self.socket(to));
        self.hosts.on(to, || vm.migrate(image, &netdev, || ())).expect("a migration");
        let moved = Instant::now();
        self.hosts.at = to;
        moved
    }

    fn ports(&self, host: usize) -> serde_json::Value {
        let said: Said =
            at(&self.socket(host)).args(["ports", "--json"]).output().expect("the command").into();
        let ports: serde_json::Value = serde_json::from_str(&said.well()).expect("JSON");
        ports[0].clone()
    }

    /// Every segment of the guest's connections was translated since it came, and the host that it has
    /// left has nothing of it.
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

/// On hosts whose QEMU moves the state of a card; otherwise skipped.
#[track_caller]
fn with_a_newer_qemu(work: impl FnOnce(&Image) + Send) {
    on_a_host_with_a_tap(|image| match vcc_qemu::with_device_state().expect("the script") {
        Some(qemu) => work(&image.clone().under(qemu)),
        None => skip("QEMU 10 is not installed, and scripts/fetch-qemu.sh has not been run"),
    });
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
        tell(&what, silences);
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
    move_with("--act split --snoop");
}
