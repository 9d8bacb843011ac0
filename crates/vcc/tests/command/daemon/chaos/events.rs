//! What an operator does, and what happens to his host.

use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use vcc_port::{Host, Netns, Port};
use vcc_testing::ip;

use super::super::{Daemon, Place};
use super::random::Random;
use super::talk::{PORTS, addresses, known, talk};
use crate::vcc;

const TREATMENTS: [&str; 4] = [
    "[default]\nunderlay = \"dctcp\"\n",
    "[default]\nunderlay = \"cubic\"\nwindow_cap = \"64K\"\n",
    "[default]\nmode = \"shadow\"\nunderlay = \"reno-ecn\"\n",
    "[[pools]]\nname = \"all\"\nwindow = \"100K\"\n[default]\npool = \"all\"\nemit = true\n",
];

/// By name, the ports that a policy has: often both.
const SELECTIONS: [&str; 4] = ["port*", "port*", "port1", "port2"];

pub fn policy(device: &str, treatment: &str) -> String {
    format!("[[ports]]\ndevice = \"{device}\"\ntenant = \"acme\"\n{treatment}")
}

/// Of a host on which a daemon runs and all is under vcc.
pub fn whole_policy() -> String {
    policy(SELECTIONS[0], TREATMENTS[0])
}

pub struct Operator<'a> {
    place: &'a Place,
    daemon: Daemon,
    guests: [&'a Netns; 2],
    /// Ports that the policy has.
    selected: [bool; 2],
    /// Ports that take no new connections.
    draining: [bool; 2],
}

impl<'a> Operator<'a> {
    /// Starts the daemon, under [`whole_policy`].
    pub fn begin(place: &'a Place, guests: [&'a Netns; 2]) -> Self {
        let daemon = place.run();
        daemon.is_ready();
        Self { place, daemon, guests, selected: [true; 2], draining: [false; 2] }
    }

    /// Something happens.
    pub fn act(mut self, random: &mut Random) -> Self {
        let whose = random.below(2) as usize;
        match random.below(9) {
            0 => {
                self.daemon.kill();
                self = self.start();
            }
            1 => self = self.upgrade(),
            2 | 3 => self.choose(random.one_of(&SELECTIONS), random.one_of(&TREATMENTS)),
            4 => self.toggle(whose, random),
            5 => self.shrink(whose, random),
            6 => self.detach(whose),
            _ => self.connect(),
        }
        self
    }

    /// A daemon puts the policy in force, even for ports that were detached by hand.
    fn start(mut self) -> Self {
        self.daemon = self.place.run();
        self.applied();
        self
    }

    /// As an upgrade finds them: with other programs than its own.
    fn upgrade(mut self) -> Self {
        self.daemon.signal(libc::SIGTERM);
        self.daemon.wait_for_log("everything stays attached");
        assert_eq!(self.daemon.end(), 0);
        Host::open().and_then(|host| host.make_stale()).expect("stale");
        self.daemon = self.place.run();
        self.applied();
        self
    }

    fn choose(&mut self, device: &str, treatment: &str) {
        self.place.write(&policy(device, treatment));
        self.selected = PORTS.map(|port| device == "port*" || device == port);
        self.reload();
    }

    fn reload(&mut self) {
        self.daemon.signal(libc::SIGHUP);
        self.applied();
    }

    fn applied(&mut self) {
        self.daemon.is_ready();
        self.draining = self.selected.map(|selected| !selected);
    }

    fn toggle(&self, whose: usize, random: &mut Random) {
        let what = random.one_of(&["tx", "tso", "gso", "gro", "sg"]);
        let state = random.one_of(&["on", "off"]);
        if random.below(2) == 0 {
            ethtool(&format!("-K {} {what} {state}", PORTS[whose]));
        } else {
            let toggle = || ethtool(&format!("-K guest {what} {state}"));
            self.guests[whose].inside(toggle).expect("inside");
        }
    }

    /// What is longer is lost without a word on a bridge, with vcc and without.
    fn shrink(&self, whose: usize, random: &mut Random) {
        let mtu = 600 + random.below(900);
        let set = |mtu: u32| ip(&format!("link set guest mtu {mtu}"));
        self.guests[whose].inside(|| set(mtu)).expect("inside");
        sleep(Duration::from_millis(100));
        self.guests[whose].inside(|| set(1500)).expect("inside");
    }

    /// By hand. It drains, for connections depend on it.
    fn detach(&mut self, whose: usize) {
        let printed = vcc(&format!("detach {}", PORTS[whose])).well();
        assert!(printed.contains("depend"), "{printed}");
        self.draining[whose] = true;
    }

    /// A new connection is translated by the ports that do not drain.
    fn connect(&self) {
        let ends = talk(self.guests);
        let translates = known(&addresses(&ends));
        assert_eq!(translates, self.draining.map(|draining| !draining));
    }

    /// What drains has all connections that it had.
    pub fn check(&self) {
        let drains = PORTS.map(|port| Port::open(port).and_then(|it| it.drains()).expect("a port"));
        assert_eq!(drains, self.draining);
    }

    /// No connection is left: what drains is off, and a reload attaches it again.
    pub fn attach_again(&mut self) {
        vcc("detach --all --wait").well();
        assert!(Port::list().expect("a list").is_empty());
        self.place.write(&whole_policy());
        self.selected = [true; 2];
        self.reload();
    }
}

/// `ethtool`, which may refuse what a device cannot do.
fn ethtool(arguments: &str) {
    let output = Command::new("ethtool").args(arguments.split(' ')).output();
    output.expect("ethtool (apt-get install ethtool)");
}
