//! The two halves of a flow, each with a connected, non-blocking socket. Their owner calls them
//! when the socket is ready.

mod answering;
mod asking;
mod framing;
mod messages;
mod ping_pong;
mod receiver;
#[cfg(test)]
mod requests_tests;
mod resettable;
#[cfg(test)]
mod resettable_tests;
mod sender;
#[cfg(test)]
mod tests;
mod transfers;

pub use answering::{Answerer, Served};
pub use asking::Asker;
pub use receiver::Receiver;
pub use resettable::ResettableReceiver;
pub use sender::Sender;
pub use transfers::TransferSender;

use crate::error::{Doing, Error, Result};
use crate::payload::Stream;
use crate::tcp_info::TcpInfo;
use socket2::Socket;
use std::io::{ErrorKind, Read};

/// The size of a read, and of the scratch buffer that the halves borrow.
pub const CHUNK_BYTES: usize = 64 * 1024;

fn tcp_info(socket: &Socket) -> Result<TcpInfo> {
    TcpInfo::read(socket).doing(|| "read TCP_INFO".into())
}

fn broken(flow: usize, end: &'static str, source: std::io::Error) -> Error {
    Error::Broken { flow, end, source }
}

/// The bytes of a flow in the other direction.
fn answers(seed: u64, flow: usize) -> Stream {
    Stream::new(!seed, flow)
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
        Err(error) => Err(broken(flow, "the sender", error)),
    }
}
