//! A TCP port of the loopback that a server can take again whenever it restarts.

use std::net::{Ipv4Addr, SocketAddrV4};

use socket2::{Domain, Socket, Type};

/// Holds a socket that is bound and does not listen. The kernel gives its port to no socket that
/// wants any port. A server that sets SO_REUSEADDR, as Go's do, can listen at it nevertheless.
pub(super) struct ReservedPort {
    socket: Socket,
}

impl ReservedPort {
    /// Panics if the loopback device is down or has no port left.
    pub fn new() -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.set_reuse_address(true).expect("SO_REUSEADDR");
        let any_port = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let bound = socket.bind(&any_port.into());
        bound.unwrap_or_else(|e| panic!("{any_port}: {e}: is the device lo up?"));
        Self { socket }
    }

    pub fn number(&self) -> u16 {
        let address = self.socket.local_addr().expect("a bound socket has an address");
        address.as_socket_ipv4().expect("an IPv4 socket").port()
    }
}
