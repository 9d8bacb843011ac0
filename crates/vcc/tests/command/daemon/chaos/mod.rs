//! Chaos at live ports: connections of every congestion control that this kernel has, between two
//! guests whose ports are both under vcc, over a path that loses, repeats, reorders, changes and holds
//! up segments, while the daemon is killed and upgraded, policies change, offloads are toggled and
//! MTUs shrink for a moment. All bytes arrive as they were sent, and no connection is lost.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

use socket2::SockRef;
use vcc_port::{Host, Netns, Port};
use vcc_testing::{ip, on_a_host, tun};

use super::{Daemon, Place};
use crate::wire::{connect_to, exchange};

/// How many things happen. `make verify` sets more.
const EVENTS: &str = "VCC_CHAOS_EVENTS";
const FEW_EVENTS: u32 = 12;
/// Another seed makes other things happen.
const SEED: &str = "VCC_CHAOS_SEED";
/// A connection that stands still for so long is lost.
const PATIENCE: Duration = Duration::from_secs(60);
const FRAME_MAX_BYTES: usize = 2048;

const POLICIES: [&str; 4] = [
    "[default]\nunderlay = \"dctcp\"\n",
    "[default]\nunderlay = \"cubic\"\nwindow_cap = \"64K\"\n",
    "[default]\nmode = \"shadow\"\nunderlay = \"reno-ecn\"\n",
    "[[pools]]\nname = \"all\"\nwindow = \"100K\"\n[default]\npool = \"all\"\nemit = true\n",
];

fn policy(number: u32) -> String {
    let default = POLICIES[number as usize % POLICIES.len()];
    format!("[[ports]]\ndevice = \"port*\"\ntenant = \"acme\"\n{default}")
}

/// xorshift64 (Marsaglia, 2003).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 32) as u32) % bound
    }
}

fn number(name: &str) -> Option<u32> {
    std::env::var(name).ok().map(|it| it.parse().unwrap_or_else(|e| panic!("{name}: {e}")))
}

/// A guest at 192.0.2.N behind the port of that number, bridged to one end of the path.
fn guest(number: u32) -> (Netns, File) {
    let guest = Netns::create().expect("a namespace");
    ip(&format!("link add port{number} type veth peer name guest netns {}", guest.path()));
    let inside = guest.inside(|| {
        ip(&format!("address add 192.0.2.{number}/24 dev guest"));
        ip("link set guest up");
    });
    inside.expect("inside");
    let path = tun::create(&format!("path{number}"), libc::IFF_TAP, libc::O_NONBLOCK);
    ip(&format!("link add bridge{number} type bridge"));
    for device in ["port", "path"] {
        ip(&format!("link set {device}{number} master bridge{number}"));
        ip(&format!("link set {device}{number} up"));
    }
    ip(&format!("link set bridge{number} up"));
    (guest, path)
}

/// Carries frames between both ends, and impairs one in some of them.
fn carry(ends: [&File; 2], seed: u64, is_over: &AtomicBool) {
    let mut random = Random(seed);
    let mut overtaken: [Option<Vec<u8>>; 2] = [None, None];
    let mut buffer = [0; FRAME_MAX_BYTES];
    while !is_over.load(Ordering::Relaxed) {
        let mut polled =
            ends.map(|end| libc::pollfd { fd: end.as_raw_fd(), events: libc::POLLIN, revents: 0 });
        // SAFETY: two live pollfds.
        unsafe { libc::poll(polled.as_mut_ptr(), 2, 20) };
        for from in 0..2 {
            let mut to = ends[1 - from];
            // The kernel drops the frame if a queue is full.
            let mut send = |frame: &[u8]| {
                let _ = to.write(frame);
            };
            let late = overtaken[from].take();
            if let Ok(bytes) = { ends[from] }.read(&mut buffer) {
                let frame = &mut buffer[..bytes];
                match random.below(1000) {
                    0..5 => {}
                    5..10 => [&frame, &frame].iter().for_each(|frame| send(frame)),
                    10..25 => overtaken[from] = Some(frame.to_vec()),
                    25..28 => {
                        let at = random.below(bytes as u32) as usize;
                        frame[at] ^= 1 << random.below(8);
                        send(frame);
                    }
                    28 => {
                        sleep(Duration::from_millis(random.below(30).into()));
                        send(frame);
                    }
                    _ => send(frame),
                }
            }
            if let Some(frame) = late {
                send(&frame);
            }
        }
    }
}

/// Ends what runs beside the test, also if it panics.
struct EndOnDrop<'a>([&'a AtomicBool; 2]);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|it| it.store(true, Ordering::Relaxed));
    }
}

/// Transfers until it is over. Returns how often.
fn transfer((mut one, mut other): (TcpStream, TcpStream), is_over: &AtomicBool) -> u32 {
    let mut times = 0;
    while !is_over.load(Ordering::Relaxed) {
        exchange(&mut one, &mut other);
        times += 1;
    }
    times
}

fn connections(guests: [&Netns; 2]) -> Vec<(TcpStream, TcpStream)> {
    let known = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let known = fs::read_to_string(known).expect(known);
    let connect = |name: &str| {
        let ends = connect_to(guests[0], guests[1], "192.0.2.2:0");
        for end in [&ends.0, &ends.1] {
            SockRef::from(end).set_tcp_congestion(name.as_bytes()).expect(name);
            end.set_read_timeout(Some(PATIENCE)).expect("a timeout");
            end.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        }
        ends
    };
    known.split_whitespace().map(connect).collect()
}

/// `ethtool`, which may refuse what a device cannot do.
fn ethtool(arguments: &str) {
    let output = Command::new("ethtool").args(arguments.split(' ')).output();
    output.expect("ethtool (apt-get install ethtool)");
}

/// Something happens. Returns the daemon that runs after it.
fn happen(place: &Place, mut daemon: Daemon, guests: [&Netns; 2], random: &mut Random) -> Daemon {
    let whose = random.below(2) as usize;
    match random.below(6) {
        0 => {
            daemon.kill();
            daemon = place.run();
            daemon.is_ready();
        }
        1 => {
            // As an upgrade finds them: with other programs than its own.
            daemon.signal(libc::SIGTERM);
            daemon.says("everything stays attached");
            assert_eq!(daemon.end(), 0);
            Host::open().and_then(|host| host.make_stale()).expect("stale");
            daemon = place.run();
            daemon.is_ready();
        }
        2 | 3 => {
            place.write(&policy(random.below(100)));
            daemon.signal(libc::SIGHUP);
            daemon.is_ready();
        }
        4 => {
            let what = ["tx", "tso", "gso", "gro", "sg"][random.below(5) as usize];
            let state = ["on", "off"][random.below(2) as usize];
            if random.below(2) == 0 {
                ethtool(&format!("-K port{} {what} {state}", whose + 1));
            } else {
                let toggle = || ethtool(&format!("-K guest {what} {state}"));
                guests[whose].inside(toggle).expect("inside");
            }
        }
        _ => {
            // What is longer is lost without a word on a bridge, with vcc and without.
            let mtu = 600 + random.below(900);
            let set = |mtu: u32| ip(&format!("link set guest mtu {mtu}"));
            guests[whose].inside(|| set(mtu)).expect("inside");
            sleep(Duration::from_millis(100));
            guests[whose].inside(|| set(1500)).expect("inside");
        }
    }
    daemon
}

#[test]
fn chaos_takes_no_byte_and_no_connection() {
    on_a_host(|| {
        let seed = u64::from(number(SEED).unwrap_or(1));
        let place = Place::new("chaos", &policy(0));
        let [(one, to_one), (other, to_other)] = [1, 2].map(guest);
        let (guests, ends) = ([&one, &other], [&to_one, &to_other]);
        let mut daemon = place.run();
        daemon.is_ready();
        let random = &mut Random(0x9e37_79b9_7f4a_7c15 ^ seed);
        let (is_done, is_over) = (&AtomicBool::new(false), &AtomicBool::new(false));
        thread::scope(|scope| {
            let _end = EndOnDrop([is_done, is_over]);
            let path = scope.spawn(move || carry(ends, seed, is_over));
            let transfers: Vec<_> = connections(guests)
                .into_iter()
                .map(|ends| scope.spawn(move || transfer(ends, is_done)))
                .collect();
            let all = transfers.len();
            for _ in 0..number(EVENTS).unwrap_or(FEW_EVENTS) {
                daemon = happen(&place, daemon, guests, random);
                sleep(Duration::from_millis(random.below(300).into()));
                for port in ["port1", "port2"] {
                    let known = Port::open(port).and_then(|it| it.flows()).expect("flows").len();
                    assert_eq!(known, all, "{port} knows all connections");
                }
            }
            is_done.store(true, Ordering::Relaxed);
            let times = transfers.into_iter().map(|it| it.join().expect("a connection was lost"));
            let times: Vec<_> = times.collect();
            is_over.store(true, Ordering::Relaxed);
            path.join().expect("the path");
            assert!(times.iter().all(|times| *times > 0), "seed {seed}: {times:?}");
            println!("seed {seed}: {} connections, exchanges of 2 MiB: {times:?}", all);
        });
    });
}
