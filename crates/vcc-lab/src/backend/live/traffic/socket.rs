//! Sockets of guests.

use super::of_flow;
use crate::base::error::{Doing, Result};
use socket2::{SockAddr, Socket};
use std::net::SocketAddr;
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A listener in the namespace that the calling thread is in.
pub fn listen(address: SocketAddr, congestion_control: &str) -> Result<Socket> {
    let listener = vcc_traffic::socket::listen(address, congestion_control).map_err(of_flow)?;
    let patient = listener.set_read_timeout(Some(CONNECT_TIMEOUT));
    patient.doing(|| format!("listen at {address}"))?;
    Ok(listener)
}

/// A connection from the namespace that the calling thread is in. The congestion control is set
/// before the handshake, so that its wishes for ECN count there.
pub fn connect(to: SocketAddr, congestion_control: &str) -> Result<Socket> {
    let doing = || format!("connect to {to}");
    let socket = vcc_traffic::socket::tcp(to, congestion_control).map_err(of_flow)?;
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
