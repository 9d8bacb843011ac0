//! Connections between the guests.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use socket2::SockRef;
use vcc_port::{Netns, Port};

use crate::wire::{connect_to, exchange};

/// A connection that stands still for so long is lost.
const PATIENCE: Duration = Duration::from_secs(60);
pub const PORTS: [&str; 2] = ["port1", "port2"];

/// Both ends.
pub type Talk = (TcpStream, TcpStream);

pub fn talk(guests: [&Netns; 2]) -> Talk {
    connect_to(guests[0], guests[1], "192.0.2.2:0")
}

/// One of each congestion control.
pub fn talks(guests: [&Netns; 2]) -> Vec<Talk> {
    let known = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let known = fs::read_to_string(known).expect(known);
    let connect = |name: &str| {
        let ends = talk(guests);
        for end in [&ends.0, &ends.1] {
            SockRef::from(end).set_tcp_congestion(name.as_bytes()).expect(name);
            end.set_read_timeout(Some(PATIENCE)).expect("a timeout");
            end.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        }
        ends
    };
    known.split_whitespace().map(connect).collect()
}

/// Transfers until it is over. Returns how often.
pub fn transfer((mut one, mut other): Talk, is_over: &AtomicBool) -> u32 {
    let mut times = 0;
    while !is_over.load(Ordering::Relaxed) {
        exchange(&mut one, &mut other);
        times += 1;
    }
    times
}

/// The addresses of a connection, as each of both ports has it: its guest's and its peer's.
pub fn addresses((one, other): &Talk) -> [(SocketAddr, SocketAddr); 2] {
    [one, other]
        .map(|end| (end.local_addr().expect("an address"), end.peer_addr().expect("an address")))
}

/// Whether each of both ports translates this connection.
pub fn known(addresses: &[(SocketAddr, SocketAddr); 2]) -> [bool; 2] {
    [0, 1].map(|which| {
        let flows = Port::open(PORTS[which]).and_then(|it| it.flows()).expect("flows");
        flows.iter().any(|flow| (flow.guest, flow.peer) == addresses[which])
    })
}
