//! A virtual machine that migrates between two hosts, with its connections.

use std::env;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use vcc_testing::Netns;

use super::{Image, Said, Vm, ip};
use super::{
    TRANSFER_BYTES, begin_from_guest, begin_to_guest, noise, on_a_host_with_a_tap, run, sha256,
};
use crate::command;

/// Migrations of the test, unless [`MOVES_VARIABLE`] says how many.
const MOVES: usize = 2;
const MOVES_VARIABLE: &str = "VCC_MOVES";

fn moves() -> usize {
    match env::var(MOVES_VARIABLE) {
        Ok(text) => text.parse().unwrap_or_else(|e| panic!("{MOVES_VARIABLE}={text}: {e}")),
        Err(_) => MOVES,
    }
}

/// For a part of a transfer, whose guest moves meanwhile.
const PATIENCE: Duration = Duration::from_secs(60);

/// Of a transfer that has to last.
const PART_BYTES: usize = 1 << 14;

/// Between two parts of it.
const PAUSE: Duration = Duration::from_millis(20);

/// Two hosts: `tap0` in the namespace of the test, and `tap1` in another one. A bridge joins them, and
/// the peer, 192.0.2.2, is on it.
struct Hosts {
    hosts: [Netns; 2],
    /// Where the guest is.
    at: usize,
}

const DCTCP: [&str; 2] = ["--underlay", "dctcp"];
const TAPS: [&str; 2] = ["tap0", "tap1"];

impl Hosts {
    /// `tap0` exists.
    fn join() -> Self {
        let home = Netns::current().expect("a namespace");
        let other = Netns::create().expect("a namespace");
        ip("address flush dev tap0");
        ip("link add fabric type bridge");
        ip("address add 192.0.2.2/24 dev fabric");
        ip(&format!("link add uplink0 type veth peer name uplink1 netns {}", other.path()));
        ip("link set fabric up");
        ip("link set tap0 master fabric up");
        ip("link set uplink0 master fabric up");
        let inside = other.inside(|| {
            ip("tuntap add dev tap1 mode tap");
            ip("link add bridge1 type bridge");
            ip("link set bridge1 up");
            ip("link set tap1 master bridge1 up");
            ip("link set uplink1 master bridge1 up");
        });
        inside.expect("inside");
        Self { hosts: [home, other], at: 0 }
    }

    /// On one of the hosts.
    fn on<T: Send>(&self, host: usize, work: impl FnOnce() -> T + Send) -> T {
        self.hosts[host].inside(work).expect("inside")
    }

    fn vcc(&self, host: usize, arguments: &[&str]) -> String {
        let said: Said =
            self.on(host, || command().args(arguments).output()).expect("the command").into();
        said.well()
    }

    fn attach(&self, host: usize, options: &[&str]) {
        self.vcc(host, &[&["attach", TAPS[host]], options].concat());
    }

    fn netdev(&self, host: usize) -> [String; 2] {
        let tap = TAPS[host];
        ["-netdev".into(), format!("tap,id=net,ifname={tap},script=no,downscript=no")]
    }

    /// The guest goes to the other host, and its connections with it. Returns when it has gone on.
    fn migrate(&mut self, vm: &mut Vm, image: &Image) -> Instant {
        let (from, to) = (self.at, 1 - self.at);
        self.attach(to, &DCTCP);
        let file = tempfile::NamedTempFile::new().expect("a file");
        let path = file.path().to_str().expect("a path");
        let switch = || {
            self.vcc(from, &["export", TAPS[from], path]);
            let said = self.vcc(to, &["import", TAPS[to], path]);
            assert!(said.contains(": 1 connection taken over\n"), "{said}");
        };
        self.on(to, || vm.migrate(image, &self.netdev(to), switch)).expect("a migration");
        let moved = Instant::now();
        self.vcc(from, &["detach", "--now", TAPS[from]]);
        self.at = to;
        moved
    }

    /// The same to a host where vcc is not.
    fn migrate_out(&mut self, vm: &mut Vm, image: &Image) -> Instant {
        let (from, to) = (self.at, 1 - self.at);
        let needs_none = || {
            let said = self.vcc(from, &["flows", TAPS[from], "--json"]);
            let flows: serde_json::Value = serde_json::from_str(&said).expect("JSON");
            let flows = flows.as_array().expect("a list");
            assert!(flows.iter().any(|flow| flow["stage"] == "established"), "{flows:?}");
            // Draining would wait for one that depends on vcc.
            let said = self.vcc(from, &["detach", TAPS[from]]);
            assert_eq!(said, format!("detached from {}\n", TAPS[from]));
        };
        self.on(to, || vm.migrate(image, &self.netdev(to), needs_none)).expect("a migration");
        self.at = to;
        Instant::now()
    }

    /// Every segment of the guest's connections was translated since it came.
    fn assert_translated(&self) {
        let said = self.vcc(self.at, &["ports", "--json"]);
        let ports: serde_json::Value = serde_json::from_str(&said).expect("JSON");
        assert_eq!(ports[0]["port"], TAPS[self.at], "{ports}");
        assert_eq!(ports[0]["counters"]["unknown"], 0, "{ports}");
    }
}

/// The guest sends a file of noise, and moves meanwhile.
fn from_guest(vm: &mut Vm, midway: &mut dyn FnMut(&mut Vm) -> Instant) -> Duration {
    let sum = run(vm, "sha256sum /tmp/noise");
    let mut stream = begin_from_guest(vm);
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let mut bytes = vec![0; TRANSFER_BYTES / 8];
    stream.read_exact(&mut bytes).expect("the first part");
    let has_moved = &AtomicBool::new(false);
    let silence = thread::scope(|scope| {
        let reader = scope.spawn(|| read_all(&stream, has_moved));
        let moved = midway(vm);
        has_moved.store(true, Ordering::Relaxed);
        let (rest, read_at) = reader.join().expect("the rest");
        bytes.extend(rest);
        after(moved, &read_at)
    });
    drop(stream);
    vm.finish().expect("its end");
    assert_eq!(bytes.len(), TRANSFER_BYTES);
    assert!(sum.contains(&sha256(&bytes)), "not what the guest has sent: {sum}");
    silence
}

/// Reads slowly until the guest has moved, so that the transfer lasts as long. Returns, too, when each
/// part came.
fn read_all(mut stream: &TcpStream, has_moved: &AtomicBool) -> (Vec<u8>, Vec<Instant>) {
    let (mut bytes, mut read_at) = (Vec::new(), Vec::new());
    let mut part = [0; PART_BYTES];
    loop {
        match stream.read(&mut part).expect("a part") {
            0 => return (bytes, read_at),
            part_bytes => bytes.extend_from_slice(&part[..part_bytes]),
        }
        read_at.push(Instant::now());
        pause_until(has_moved);
    }
}

fn pause_until(has_moved: &AtomicBool) {
    if !has_moved.load(Ordering::Relaxed) {
        thread::sleep(PAUSE);
    }
}

/// How long after the move the transfer went on.
fn after(moved: Instant, parts_at: &[Instant]) -> Duration {
    let next = parts_at.iter().find(|at| **at > moved);
    *next.expect("a transfer that lasts longer than the move") - moved
}

/// The guest receives noise, and moves meanwhile.
fn to_guest(vm: &mut Vm, midway: &mut dyn FnMut(&mut Vm) -> Instant) -> Duration {
    let noise = noise();
    let mut stream = begin_to_guest(vm);
    stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    let (first, rest) = noise.split_at(TRANSFER_BYTES / 8);
    stream.write_all(first).expect("the first part");
    let has_moved = &AtomicBool::new(false);
    let silence = thread::scope(|scope| {
        let stream = &stream;
        let writer = scope.spawn(move || {
            let mut stream = stream;
            let written_at = rest.chunks(PART_BYTES).map(|part| {
                stream.write_all(part).expect("a part");
                pause_until(has_moved);
                Instant::now()
            });
            let written_at: Vec<Instant> = written_at.collect();
            stream.shutdown(Shutdown::Write).expect("an end");
            written_at
        });
        let moved = midway(vm);
        has_moved.store(true, Ordering::Relaxed);
        after(moved, &writer.join().expect("the rest"))
    });
    let sum = vm.finish().expect("its end");
    assert!(sum.contains(&sha256(&noise)), "not what the guest was sent: {sum}");
    silence
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
        let mut silences: Vec<Duration> = (0..moves())
            .map(|number| {
                let transfer = if number % 4 < 2 { from_guest } else { to_guest };
                let silence = transfer(&mut vm, &mut |vm| hosts.migrate(vm, image));
                hosts.assert_translated();
                silence
            })
            .collect();
        silences.sort();
        println!(
            "figure: {} migrations in transfers of {TRANSFER_BYTES} bytes: each whole, no segment \
             untranslated; the transfer goes on after {:.1?} at the median, {:.1?} at most",
            silences.len(),
            silences[silences.len() / 2],
            silences[silences.len() - 1],
        );
    });
}

#[test]
#[ignore = "two emulated machines at once: make verify runs it"]
fn connections_that_need_no_vcc_move_to_a_host_without_it() {
    on_a_host_with_a_tap(|image| {
        let options = ["--underlay", "swift", "--migratable"];
        let (mut hosts, mut vm) = boot(image, &options);
        for transfer in [from_guest, to_guest] {
            transfer(&mut vm, &mut |vm| hosts.migrate_out(vm, image));
            hosts.attach(hosts.at, &options);
        }
    });
}
