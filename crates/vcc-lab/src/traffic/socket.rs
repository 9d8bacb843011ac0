//! Sockets of guests.

use crate::error::{Doing, Result};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A listener in the namespace that the calling thread is in.
pub fn listen(address: SocketAddr, congestion_control: &str) -> Result<Socket> {
    let doing = || format!("listen at {address}");
    let listener = Socket::from(TcpListener::bind(address).doing(doing)?);
    listener.set_read_timeout(Some(CONNECT_TIMEOUT)).doing(doing)?;
    set_congestion_control(&listener, congestion_control)?;
    Ok(listener)
}

/// A connection from the namespace that the calling thread is in. The congestion control is set
/// before the handshake, so that its wishes for ECN count there.
pub fn connect(to: SocketAddr, congestion_control: &str) -> Result<Socket> {
    let doing = || format!("connect to {to}");
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP));
    let socket = socket.doing(doing)?;
    set_congestion_control(&socket, congestion_control)?;
    socket.connect_timeout(&SockAddr::from(to), CONNECT_TIMEOUT).doing(doing)?;
    socket.set_nonblocking(true).doing(doing)?;
    Ok(socket)
}

/// The next connection that the listener has.
pub fn accept(listener: &Socket) -> Result<Socket> {
    let doing = || "accept a connection".to_owned();
    let (socket, _) = listener.accept().doing(doing)?;
    socket.set_nonblocking(true).doing(doing)?;
    Ok(socket)
}

fn set_congestion_control(socket: &Socket, name: &str) -> Result<()> {
    socket
        .set_tcp_congestion(name.as_bytes())
        .doing(|| format!("use the congestion control '{name}' (does this kernel have it?)"))
}

/// Takes no more from writers than this beyond what has been sent (TCP_NOTSENT_LOWAT of tcp(7)).
pub fn limit_unsent(socket: &Socket, bytes: u32) -> Result<()> {
    socket.set_tcp_notsent_lowat(bytes).doing(|| "limit what a socket holds unsent".into())
}
