//! Connections that a port in the kernel translates.

use std::time::{Duration, Instant};

use super::super::{Image, TRANSFER_BYTES, Vm, on_a_host_with_a_tap, run};
use super::ground::Ground;
use super::hosts::{Hosts, TAPS};
use super::transfers::{from_guest, to_guest};
use super::{cases, floods, moves, report, with_a_newer_qemu};

const DCTCP: [&str; 2] = ["--underlay", "dctcp"];

impl Hosts {
    fn attach(&self, host: usize, options: &[&str]) {
        self.vcc(host, &[&["attach", TAPS[host]], options].concat());
    }

    fn netdev(&self, host: usize) -> [String; 2] {
        let tap = TAPS[host];
        ["-netdev".into(), format!("tap,id=net,ifname={tap},script=no,downscript=no")]
    }

    /// The guest goes to a host where vcc is not.
    fn migrate_out(&mut self, vm: &mut Vm, image: &Image) -> Instant {
        let (from, to) = (self.at, 1 - self.at);
        let needs_none = || {
            let output = self.vcc(from, &["flows", TAPS[from], "--json"]);
            let flows: serde_json::Value = serde_json::from_str(&output).expect("JSON");
            let flows = flows.as_array().expect("a list");
            assert!(flows.iter().any(|flow| flow["stage"] == "established"), "{flows:?}");
            // Draining would wait for one that depends on vcc.
            let output = self.vcc(from, &["detach", TAPS[from]]);
            assert_eq!(output, format!("detached from {}\n", TAPS[from]));
        };
        self.on(to, || vm.migrate(image, &self.netdev(to), needs_none)).expect("a migration");
        self.at = to;
        Instant::now()
    }
}

impl Ground for Hosts {
    /// Each connection that the guest had is taken over.
    fn migrate(&mut self, vm: &mut Vm, image: &Image) -> Instant {
        let (from, to) = (self.at, 1 - self.at);
        self.attach(to, &DCTCP);
        let file = tempfile::NamedTempFile::new().expect("a file");
        let path = file.path().to_str().expect("a path");
        let switch = || {
            self.vcc(from, &["export", TAPS[from], path]);
            let output = self.vcc(to, &["import", TAPS[to], path]);
            assert!(output.ends_with(" taken over\n"), "{output}");
        };
        self.on(to, || vm.migrate(image, &self.netdev(to), switch)).expect("a migration");
        let moved = Instant::now();
        self.vcc(from, &["detach", "--now", TAPS[from]]);
        self.at = to;
        moved
    }

    fn assert_moved(&self) {
        let output = self.vcc(self.at, &["ports", "--json"]);
        let ports: serde_json::Value = serde_json::from_str(&output).expect("JSON");
        assert_eq!(ports[0]["port"], TAPS[self.at], "{ports}");
        assert_eq!(ports[0]["counters"]["unknown"], 0, "{ports}");
    }
}

/// A guest on the first host, whose port has the options, with noise to send.
fn boot(image: &Image, options: &[&str]) -> (Hosts, Vm) {
    let hosts = Hosts::join();
    hosts.attach(0, options);
    let mut vm = Vm::boot(image, &hosts.netdev(0), |_| ()).expect("a guest");
    run(&mut vm, "ifconfig eth0 192.0.2.1 netmask 255.255.255.0");
    run(&mut vm, &format!("head -c {TRANSFER_BYTES} /dev/urandom >/tmp/noise"));
    (hosts, vm)
}

#[test]
#[ignore = "two emulated machines at once: make verify runs it"]
fn connections_move_with_their_guest() {
    on_a_host_with_a_tap(|image| {
        let (mut hosts, mut vm) = boot(image, &DCTCP);
        let silences: Vec<Duration> = (0..moves())
            .map(|number| {
                let transfer = if number % 4 < 2 { from_guest } else { to_guest };
                let silence = transfer(&mut vm, &mut |vm| hosts.migrate(vm, image));
                hosts.assert_moved();
                silence
            })
            .collect();
        let what =
            format!("in transfers of {TRANSFER_BYTES} bytes: each whole, no segment untranslated");
        report(&what, silences);
    });
}

#[test]
#[ignore = "two emulated machines at once: make verify runs it"]
fn connections_that_need_no_vcc_move_to_a_host_without_it() {
    on_a_host_with_a_tap(|image| {
        let options = ["--underlay", "swift", "--migratable"];
        let (mut hosts, mut vm) = boot(image, &options);
        let silences: Vec<Duration> = (0..moves())
            .map(|number| {
                let transfer = if number % 2 == 0 { from_guest } else { to_guest };
                let silence = transfer(&mut vm, &mut |vm| hosts.migrate_out(vm, image));
                hosts.attach(hosts.at, &options);
                silence
            })
            .collect();
        let what = format!(
            "to hosts without vcc, by `--migratable`, in transfers of {TRANSFER_BYTES} bytes: each whole"
        );
        report(&what, silences);
    });
}

#[test]
#[ignore = "two emulated machines at once: make verify runs it"]
fn connections_move_in_any_state() {
    on_a_host_with_a_tap(|image| {
        let (mut hosts, mut vm) = boot(image, &DCTCP);
        cases::all(&mut vm, &mut hosts, image);
    });
}

/// A guest under QEMU 7.2 that floods may send nothing more after a move, with vcc or without.
#[test]
#[ignore = "two emulated machines at once: make verify runs it"]
fn goodput_is_back_after_a_move() {
    with_a_newer_qemu(|image| {
        let (mut hosts, mut vm) = boot(image, &DCTCP);
        floods::both(&mut vm, &mut hosts, image, "through a port in the kernel");
    });
}

/// Both hosts without vcc, to compare with.
struct Plain(Hosts);

impl Ground for Plain {
    fn migrate(&mut self, vm: &mut Vm, image: &Image) -> Instant {
        let Plain(hosts) = self;
        let to = 1 - hosts.at;
        hosts.on(to, || vm.migrate(image, &hosts.netdev(to), || ())).expect("a migration");
        hosts.at = to;
        Instant::now()
    }

    fn assert_moved(&self) {}
}

#[test]
#[ignore = "two emulated machines at once: make verify runs it"]
fn goodput_is_back_without_vcc() {
    with_a_newer_qemu(|image| {
        let (hosts, mut vm) = boot(image, &DCTCP);
        hosts.vcc(0, &["detach", "--now", TAPS[0]]);
        floods::both(&mut vm, &mut Plain(hosts), image, "without vcc");
    });
}
