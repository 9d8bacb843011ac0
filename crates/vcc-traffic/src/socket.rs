//! TCP sockets with a given congestion control.

use crate::error::{Doing, Result};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::net::SocketAddr;

/// The backlog.
const BACKLOG: i32 = 1024;

/// A listener in the network namespace that the calling thread is in. Its connections inherit the
/// congestion control.
///
/// # Errors
/// The kernel has no such congestion control, or the address is not free.
pub fn listen(address: SocketAddr, congestion_control: &str) -> Result<Socket> {
    let doing = || format!("listen at {address}");
    let listener = tcp(address, congestion_control)?;
    listener.set_reuse_address(true).doing(doing)?;
    listener.bind(&SockAddr::from(address)).doing(doing)?;
    listener.listen(BACKLOG).doing(doing)?;
    Ok(listener)
}

/// A socket for a connection to this address. The congestion control is set before the handshake,
/// because it may ask for ECN there.
///
/// # Errors
/// The kernel has no such congestion control, or cannot create a socket.
pub fn tcp(to: SocketAddr, congestion_control: &str) -> Result<Socket> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP));
    let socket = socket.doing(|| "make a socket".into())?;
    socket.set_tcp_congestion(congestion_control.as_bytes()).doing(|| {
        format!("use the congestion control '{congestion_control}' (does this kernel have it?)")
    })?;
    Ok(socket)
}

/// Limits the unsent data in the socket (TCP_NOTSENT_LOWAT of tcp(7)).
///
/// # Errors
/// This is not a TCP socket.
pub fn limit_unsent(socket: &Socket, bytes: u32) -> Result<()> {
    socket.set_tcp_notsent_lowat(bytes).doing(|| "limit what a socket holds unsent".into())
}
