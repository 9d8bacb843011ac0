//! The flows that this guest sends: what all kinds of them have in common.

use crate::poll::{Poll, Source};
use crate::sending::Sending;
use crate::transferring::Transferring;
use socket2::{SockAddr, Socket};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use vcc_traffic::plan::FlowToSend;
use vcc_traffic::report::SenderHalf;
use vcc_traffic::{Doing, Error, Pattern, Result, socket};

pub trait Outgoing {
    /// Its time to connect has come.
    fn connect(&mut self, _: &Poll) -> Result<()> {
        Ok(())
    }

    /// Does what its socket lets it do by now.
    fn advance(&mut self, poll: &Poll, scratch: &mut [u8]) -> Result<()>;
    fn join(&mut self, poll: &Poll, scratch: &mut [u8]) -> Result<()>;
    fn leave(&mut self) -> Result<()>;

    /// The time of its next transfer has come.
    fn let_transfer(&mut self, _: &Poll) -> Result<()> {
        Ok(())
    }

    /// The window of measurement begins.
    fn start_measuring(&mut self, _start_ns: u64) -> Result<()> {
        Ok(())
    }

    /// A worker's message goes this way, if it is one for messages.
    fn post(&mut self, worker: usize, _bytes: u64) -> Result<()> {
        Err(Error::Plan(format!("has worker {worker} send over a flow that takes no messages")))
    }

    /// The workers whose messages have been answered since this was last called.
    fn take_answered(&mut self) -> Vec<usize> {
        Vec::new()
    }

    fn sample(&mut self, _at_us: u64) -> Result<()> {
        Ok(())
    }

    /// The window of measurement ends.
    fn finish(&mut self) -> Result<()>;
    fn into_half(self: Box<Self>) -> Result<SenderHalf>;
}

/// The flow at this position of the plan; `from` is the guest's own address.
pub fn outgoing(plan: &FlowToSend, from: IpAddr, number: usize) -> Box<dyn Outgoing + '_> {
    match plan.pattern {
        Pattern::Bulk | Pattern::PingPong | Pattern::Messages(_) | Pattern::Idle => {
            Box::new(Sending::new(plan, from, number))
        }
        Pattern::Transfers(transfers) => Box::new(Transferring::new(plan, transfers, from, number)),
    }
}

/// Sends the SYN of a connection; `number` is what the socket is watched as.
pub fn ask(
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

/// Whether the handshake is over.
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
