//! The two halves of a flow, each with a connected, non-blocking socket. Neither waits: whoever
//! holds them calls when the socket is ready.

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

/// One read. The halves are lent a scratch buffer of this.
pub const CHUNK_BYTES: usize = 64 * 1024;

fn tcp_info(socket: &Socket) -> Result<TcpInfo> {
    TcpInfo::of(socket).doing(|| "read TCP_INFO".into())
}

fn broken(flow: usize, end: &str, error: &std::io::Error) -> Error {
    Error::Flow { flow, problem: format!("{end}'s socket failed: {error}") }
}
