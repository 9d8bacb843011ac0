//! Non-blocking connects.

use crate::poll::{Poll, Source};
use socket2::{SockAddr, Socket};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use vcc_traffic::plan::FlowToSend;
use vcc_traffic::{Doing, Result, socket};

/// Begins to connect; `number` is the flow's position in the plan, by which `poll` reports the
/// socket.
pub fn connect(
    plan: &FlowToSend,
    from: IpAddr,
    from_port: u16,
    poll: &Poll,
    number: usize,
) -> Result<Socket> {
    let to = plan.to;
    let from = SocketAddr::new(from, from_port);
    let doing = || format!("connect from {from} to {to}");
    let socket = socket::tcp(to, &plan.congestion_control)?;
    socket.set_reuse_address(true).doing(doing)?;
    socket.set_nonblocking(true).doing(doing)?;
    socket.bind(&SockAddr::from(from)).doing(doing)?;
    match socket.connect(&SockAddr::from(to)) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => {
            return Err(error).doing(doing);
        }
        Ok(()) | Err(_) => {}
    }
    let interest = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLET;
    poll.add(socket.as_raw_fd(), interest, Source::Sender(number))?;
    Ok(socket)
}

/// Whether the handshake has ended; an error if it failed.
pub fn is_connected(socket: &Socket, plan: &FlowToSend) -> Result<bool> {
    let doing = || format!("connect from port {} to {}", plan.from_port, plan.to);
    if let Some(error) = socket.take_error().doing(doing)? {
        return Err(error).doing(doing);
    }
    match socket.peer_addr() {
        Ok(_) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::ENOTCONN) => Ok(false),
        Err(error) => Err(error).doing(doing),
    }
}
