//! Two hosts, between which a guest moves.

use vcc_testing::Netns;

use super::super::{CommandOutput, ip};
use crate::command;

pub const TAPS: [&str; 2] = ["tap0", "tap1"];

/// Two hosts: `tap0` in the namespace of the test, and `tap1` in another one. A bridge joins them, and
/// the peer, 192.0.2.2, is on it.
pub struct Hosts {
    hosts: [Netns; 2],
    /// Where the guest is.
    pub at: usize,
}

impl Hosts {
    /// `tap0` exists.
    pub fn join() -> Self {
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
    pub fn on<T: Send>(&self, host: usize, work: impl FnOnce() -> T + Send) -> T {
        self.hosts[host].inside(work).expect("inside")
    }

    pub fn vcc(&self, host: usize, arguments: &[&str]) -> String {
        let printed: CommandOutput =
            self.on(host, || command().args(arguments).output()).expect("the command").into();
        printed.well()
    }
}
