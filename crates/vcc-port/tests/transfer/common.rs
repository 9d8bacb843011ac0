//! Addresses, offloads and transfers.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use vcc_port::Netns;
use vcc_testing::ip;

/// A transfer that takes this long has stalled.
pub const STALLED: Duration = Duration::from_secs(30);
const SOON: Duration = Duration::from_millis(300);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

pub fn address(v6: bool, host: u8) -> IpAddr {
    if v6 { format!("fd00::{host}").parse().expect("an address") } else { [192, 0, 2, host].into() }
}

pub fn configure(device: &str, host: u8) {
    ip(&format!("address add {}/24 dev {device}", address(false, host)));
    ip(&format!("address add {}/64 dev {device} nodad", address(true, host)));
    ip(&format!("link set {device} up"));
}

/// Sets net.ipv4.tcp_ecn: 0 neither requests nor accepts ECN, 1 does both.
pub fn set_ecn(value: &str) {
    fs::write("/proc/sys/net/ipv4/tcp_ecn", value).expect("net.ipv4.tcp_ecn");
}

pub fn ethtool(device: &str, offloads: &str) {
    let output = Command::new("ethtool")
        .args(["-K", device])
        .args(offloads.split(' '))
        .output()
        .expect("ethtool");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ethtool -K {device} {offloads}: {stderr}");
}

/// An end of connections, in a namespace, or in that of the calling thread.
pub struct End<'a> {
    pub netns: Option<&'a Netns>,
    pub host: u8,
}

impl End<'_> {
    fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match self.netns {
            Some(netns) => netns.inside(work).expect("inside"),
            None => work(),
        }
    }

    /// Whether the other end refuses a connection, which takes a way there and back.
    pub fn reaches(&self, other: &End, v6: bool) -> Result<(), String> {
        let nobody = SocketAddr::new(address(v6, other.host), 9);
        let tried = self.run(|| TcpStream::connect_timeout(&nobody, SOON));
        match tried.map_err(|error| error.kind()) {
            Err(ErrorKind::ConnectionRefused) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    }

    /// The opener's end and the listener's.
    pub fn connect(&self, listener: &End, v6: bool) -> (TcpStream, TcpStream) {
        let to = address(v6, listener.host);
        let listening = listener.run(|| TcpListener::bind((to, 0)).expect("a listener"));
        let to: SocketAddr = listening.local_addr().expect("an address");
        let dial = || TcpStream::connect_timeout(&to, STALLED).expect("connected");
        (self.run(dial), listening.accept().expect("accepted").0)
    }
}

/// Payload in which a misplaced byte shows.
pub fn payload(bytes: usize) -> Vec<u8> {
    let words = (0..bytes as u32 / 4).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes());
    words.collect()
}

/// Both ends have a limit: the end of a scope waits for either.
pub fn send(mut stream: &TcpStream, payload: &[u8]) {
    stream.set_write_timeout(Some(STALLED)).expect("a timeout");
    stream.write_all(payload).expect("sent");
}

pub fn receive(mut stream: &TcpStream, payload: &[u8]) {
    stream.set_read_timeout(Some(STALLED)).expect("a timeout");
    let mut arrived = vec![0; payload.len()];
    stream.read_exact(&mut arrived).expect("received before it counts as stalled");
    assert!(arrived == payload, "what arrived is not what was sent");
}

/// Transfers the payload in both directions at once, and compares what arrives.
pub fn exchange(one: &TcpStream, other: &TcpStream, payload: &[u8]) {
    thread::scope(|scope| {
        scope.spawn(|| send(one, payload));
        scope.spawn(|| send(other, payload));
        scope.spawn(|| receive(one, payload));
        receive(other, payload);
    });
}

/// Waits for the effect of segments that are still on their way.
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let begun = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(why) if begun.elapsed() > STALLED => panic!("{what}: {why}"),
            Err(_) => thread::sleep(LOOK_AGAIN),
        }
    }
}
