//! Live TCP between a guest and the host.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;
use std::{fs, io};

use socket2::{Domain, Socket, Type};
use vcc_port::Netns;
use vcc_testing::ip;

/// A connection from the guest to the host: the guest's end and the host's.
pub fn connect(guest: &Netns) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("192.0.2.2:0").expect("a listener");
    connect_with(guest, listener)
}

/// A connection from one guest to another, which listens at `address`.
pub fn connect_to(guest: &Netns, other: &Netns, address: &str) -> (TcpStream, TcpStream) {
    let listener = other.inside(|| TcpListener::bind(address)).expect("inside");
    connect_with(guest, listener.expect("a listener"))
}

fn connect_with(guest: &Netns, listener: TcpListener) -> (TcpStream, TcpStream) {
    let address = listener.local_addr().expect("an address");
    let connected = guest.inside(|| TcpStream::connect(address)).expect("inside");
    (connected.expect("a connection"), listener.accept().expect("a connection").0)
}

/// The guest's end and the peer's, in the format of `vcc flows`.
pub fn ends(guests_end: &TcpStream) -> [String; 2] {
    [guests_end.local_addr(), guests_end.peer_addr()].map(|end| end.expect("an end").to_string())
}

/// Another guest, at 192.0.2.3 behind `other`, bridged to the one behind `port`; it neither asks
/// for ECN nor accepts it.
pub fn neighbour() -> Netns {
    let other = Netns::create().expect("a namespace");
    ip(&format!("link add other type veth peer name guest netns {}", other.path()));
    let inside = other.inside(|| {
        ip("address add 192.0.2.3/24 dev guest");
        ip("link set guest up");
        fs::write("/proc/sys/net/ipv4/tcp_ecn", "0").expect("net.ipv4.tcp_ecn");
    });
    inside.expect("inside");
    ip("link add bridge type bridge");
    for device in ["port", "other"] {
        ip(&format!("link set {device} master bridge"));
        ip(&format!("link set {device} up"));
    }
    ip("link set bridge up");
    other
}

/// Sends a mebibyte each way and compares what arrives with what was sent.
pub fn exchange(one: &mut TcpStream, other: &mut TcpStream) {
    let payload: Vec<u8> =
        (0u32..1 << 18).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let transfer = |from: &mut TcpStream, to: &mut TcpStream| {
        let mut arrived = vec![0; payload.len()];
        std::thread::scope(|scope| {
            scope.spawn(|| from.write_all(&payload).expect("sent"));
            to.read_exact(&mut arrived).expect("received");
        });
        assert!(arrived == payload, "what arrived is not what was sent");
    };
    transfer(one, other);
    transfer(other, one);
}

/// From an address of one's own choice, in the calling thread's namespace. The connection ends
/// without a trace, so that the next can have the same two ends at once.
pub fn connect_from(from: SocketAddr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(from), Type::STREAM, None)?;
    socket.set_linger(Some(Duration::ZERO))?;
    socket.bind(&from.into())?;
    socket.connect(&to.into())?;
    Ok(socket.into())
}
