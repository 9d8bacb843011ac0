//! The two halves of a flow, each with a connected, non-blocking socket. Their owner calls them
//! when the socket is ready.

mod messages;
mod ping_pong;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;
mod transfers;

pub use receiver::Receiver;
pub use sender::Sender;
pub use transfers::TransferSender;

use crate::error::{Doing, Error, Result};
use crate::tcp_info::TcpInfo;
use socket2::Socket;
use std::io::{ErrorKind, Read};

/// The size of a read, and of the scratch buffer that the halves borrow.
pub const CHUNK_BYTES: usize = 64 * 1024;

fn tcp_info(socket: &Socket) -> Result<TcpInfo> {
    TcpInfo::of(socket).doing(|| "read TCP_INFO".into())
}

fn broken(flow: usize, end: &str, error: &std::io::Error) -> Error {
    Error::Flow { flow, problem: format!("{end}'s socket failed: {error}") }
}

/// Whether a sender that has stopped writing has received the receiver's FIN.
fn end_has_come(mut socket: &Socket, flow: usize, scratch: &mut [u8]) -> Result<bool> {
    match socket.read(scratch) {
        Ok(0) => Ok(true),
        Ok(bytes) => {
            let problem = format!("the receiver sent {bytes} bytes that nobody asked for");
            Err(Error::Flow { flow, problem })
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(broken(flow, "the sender", &error)),
    }
}
